// What all servers of a Berth in a cluster have in common is in a Secret, since each pod has a data directory of its own: the key
// of the secrets in the database, the fleet's authority, and which host has which addresses. The first server makes it. The
// supervisor alone reads it, by the pod's token, and again and again: the key of the secrets may be rotated by any of them.

import { chmod, mkdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Clock } from '../../lib/clock.ts'
import { loadSecretKey } from '../../lib/crypto.ts'
import { writeDurably } from '../../lib/write-durably.ts'
import {
  type Api,
  changeObject,
  createObject,
  getObject,
  type KubeObject,
  pathOf,
} from '../../kubernetes/api.ts'
import { keyFileIn } from '../../processes/channel.ts'
import { type KeyKeeper, nextOf } from '../../processes/data-key.ts'
import { keptStateOf } from '../process-command.ts'

type Kept = KubeObject & { data?: Record<string, string> }
type Around = {
  api: Api
  namespace: string
  /** The server's user, whose the key of the secrets is. */
  owner: { uid: number; gid: number }
}

const NAME = 'berth-server'
const GONE = `The Secret ${NAME} is gone: put it back from your backup, since nothing else has the keys of this Berth.`
const HOSTS = 'hosts.json'
const KEY = 'secret.key'
/** While the key is rotated, and after a rotation that was interrupted. */
const NEXT_KEY = 'secret.key.next'

/** By the names in the Secret, the files below the data directory. */
const filesIn = (dataDir: string): Record<string, string> => ({
  [KEY]: keyFileOf(dataDir),
  [NEXT_KEY]: nextOf(keyFileOf(dataDir)),
  'ca.key': join(dataDir, 'fleet/ca.key'),
  'ca.crt': join(dataDir, 'fleet/ca.crt'),
  [HOSTS]: join(dataDir, 'fleet', HOSTS),
})

const keyFileOf = (dataDir: string) => keyFileIn(keptStateOf(dataDir, 'server'))
const secretsOf = (namespace: string) => pathOf('api', 'v1', 'namespaces', namespace, 'secrets')

/**
 * Call it before anything uses the keys. Several servers that start at once end up with the same.
 *
 * @param makeAuthority Makes that of the fleet in the data directory, if there is none.
 */
export async function shareKeys(
  dataDir: string,
  { api, namespace, owner }: Around,
  makeAuthority: () => Promise<void>,
): Promise<void> {
  const path = secretsOf(namespace)
  const found = await getObject<Kept>(api, path + pathOf(NAME))
  if (found) return await writeFiles(dataDir, found, owner)
  await makeAuthority()
  await loadSecretKey(keyFileOf(dataDir))
  const data = await readFiles(dataDir)
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: NAME }, type: 'Opaque', data }
  await createObject(api, path, secret)
  const kept = await getObject<Kept>(api, path + pathOf(NAME))
  if (!kept) throw new Error(`The Secret ${NAME} was not there right after it was made.`)
  await writeFiles(dataDir, kept, owner)
}

/** Call it when this server leads: which addresses hosts got from another one. */
export const takeHosts = async (dataDir: string, around: Around) => await take(dataDir, [HOSTS], around)

/** Call it now and then: another server may have rotated the key of the secrets. */
export const takeKeys = async (dataDir: string, around: Around) =>
  await take(dataDir, [KEY, NEXT_KEY], around)

async function take(dataDir: string, names: string[], { api, namespace, owner }: Around): Promise<void> {
  const found = await getObject<Kept>(api, secretsOf(namespace) + pathOf(NAME))
  const data = Object.entries(found?.data ?? {}).filter(([name]) => names.includes(name))
  await writeFiles(dataDir, { metadata: { name: NAME }, data: Object.fromEntries(data) }, owner)
}

/** Call it after each change, before the host that it is about is told. */
export async function keepHosts(
  dataDir: string,
  { api, namespace, clock }: Omit<Around, 'owner'> & { clock: Clock },
): Promise<void> {
  const { [HOSTS]: hosts } = await readFiles(dataDir)
  if (hosts === undefined) return
  const change = (found: Kept) =>
    found.data?.[HOSTS] === hosts ? null : { ...found, data: { ...found.data, [HOSTS]: hosts } }
  await changeObject<Kept>(api, { path: secretsOf(namespace) + pathOf(NAME), change, clock })
}

/** For a rotation by any server. The others open the database by either key, once they have looked again. */
export function keeperOfKey(
  dataDir: string,
  { api, namespace, owner, clock }: Around & { clock: Clock },
): KeyKeeper {
  const path = secretsOf(namespace) + pathOf(NAME)
  return {
    take: async () => await takeKeys(dataDir, { api, namespace, owner }),
    keep: async ({ key, next }) => {
      const change = (found: Kept) => {
        const others = Object.entries(found.data ?? {}).filter(([name]) => name !== NEXT_KEY)
        const keys = { [KEY]: key.toString('base64'), ...(next && { [NEXT_KEY]: next.toString('base64') }) }
        return { ...found, data: { ...Object.fromEntries(others), ...keys } }
      }
      if (!(await changeObject<Kept>(api, { path, change, clock }))) throw new Error(GONE)
    },
  }
}

/** In base64. */
async function readFiles(dataDir: string): Promise<Record<string, string>> {
  const read = async ([name, file]: [string, string]) => {
    const content = await readFile(file).catch(() => null)
    return content === null ? [] : [[name, content.toString('base64')] as const]
  }
  return Object.fromEntries((await Promise.all(Object.entries(filesIn(dataDir)).map(read))).flat())
}

async function writeFiles(dataDir: string, { data = {} }: Kept, server: Around['owner']): Promise<void> {
  const there = await readFiles(dataDir)
  for (const [name, file] of Object.entries(filesIn(dataDir))) {
    const content = data[name]
    if (content === undefined || content === there[name]) continue
    await mkdir(dirname(file), { recursive: true })
    const owner = name === KEY || name === NEXT_KEY ? server : undefined
    await writeDurably(file, Buffer.from(content, 'base64'), name === 'ca.crt' ? 0o644 : 0o600, owner)
  }
  await chmod(join(dataDir, 'fleet'), 0o755)
}
