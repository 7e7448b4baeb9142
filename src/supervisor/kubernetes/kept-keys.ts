// What all servers of a Berth in a cluster have in common is in a Secret, since each pod has a data directory of its own: the key
// of the secrets in the database, the fleet's authority, and which host has which addresses. The first server makes it. The
// supervisor alone reads it, by the pod's token.

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
import { keptStateOf } from '../process-command.ts'

type Kept = KubeObject & { data?: Record<string, string> }
type Around = {
  api: Api
  namespace: string
  /** The server's user, whose the key of the secrets is. */
  owner: { uid: number; gid: number }
}

const NAME = 'berth-server'
const HOSTS = 'hosts.json'

/** By the names in the Secret, the files below the data directory. */
const filesIn = (dataDir: string): Record<string, string> => ({
  'secret.key': keyFileIn(keptStateOf(dataDir, 'server')),
  'ca.key': join(dataDir, 'fleet/ca.key'),
  'ca.crt': join(dataDir, 'fleet/ca.crt'),
  [HOSTS]: join(dataDir, 'fleet', HOSTS),
})

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
  await loadSecretKey(filesIn(dataDir)['secret.key'] ?? '')
  const data = await readFiles(dataDir)
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: NAME }, type: 'Opaque', data }
  await createObject(api, path, secret)
  const kept = await getObject<Kept>(api, path + pathOf(NAME))
  if (!kept) throw new Error(`The Secret ${NAME} was not there right after it was made.`)
  await writeFiles(dataDir, kept, owner)
}

/** Call it when this server leads: which addresses hosts got from another one. */
export async function takeHosts(dataDir: string, { api, namespace, owner }: Around): Promise<void> {
  const found = await getObject<Kept>(api, secretsOf(namespace) + pathOf(NAME))
  const hosts = found?.data?.[HOSTS]
  if (hosts !== undefined)
    await writeFiles(dataDir, { metadata: { name: NAME }, data: { [HOSTS]: hosts } }, owner)
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

/** In base64. */
async function readFiles(dataDir: string): Promise<Record<string, string>> {
  const read = async ([name, file]: [string, string]) => {
    const content = await readFile(file).catch(() => null)
    return content === null ? [] : [[name, content.toString('base64')] as const]
  }
  return Object.fromEntries((await Promise.all(Object.entries(filesIn(dataDir)).map(read))).flat())
}

async function writeFiles(dataDir: string, { data = {} }: Kept, server: Around['owner']): Promise<void> {
  for (const [name, file] of Object.entries(filesIn(dataDir))) {
    const content = data[name]
    if (content === undefined) continue
    await mkdir(dirname(file), { recursive: true })
    const owner = name === 'secret.key' ? server : undefined
    await writeDurably(file, Buffer.from(content, 'base64'), name === 'ca.crt' ? 0o644 : 0o600, owner)
  }
  await chmod(join(dataDir, 'fleet'), 0o755)
}
