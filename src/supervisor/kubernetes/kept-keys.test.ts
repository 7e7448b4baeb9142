// The keys of several servers in a cluster, in a Secret of an API server in memory.

import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestClock } from '../../../test/support/clock.ts'
import { createTestDatabase } from '../../../test/support/postgres.ts'
import { type FakeApiServer, startFakeApiServer } from '../../../test/support/kubernetes/fake-api-server.ts'
import { issueIdentity } from '../../certificates/fleet-ca.ts'
import { type Api, openApi } from '../../kubernetes/api.ts'
import { silentLog } from '../../lib/log.ts'
import { keyFileIn } from '../../processes/channel.ts'
import { type KeyKeeper, openDataKey, rotateKeyFile } from '../../processes/data-key.ts'
import { openDatabase } from '../../store/db.ts'
import { keptStateOf } from '../process-command.ts'
import { keeperOfKey, keepHosts, shareKeys, takeHosts, takeKeys } from './kept-keys.ts'

const owner = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }
let fake: FakeApiServer
let api: Api
let directory: string
const around = () => ({ api, namespace: 'berth', owner })

beforeEach(async () => {
  fake = await startFakeApiServer()
  api = openApi(fake.access)
  directory = await mkdtemp(join(tmpdir(), 'berth-kept-keys-'))
})
afterEach(async () => {
  api.close()
  await fake.close()
  await rm(directory, { recursive: true })
})

async function startServer(name: string): Promise<string> {
  const dataDir = join(directory, name)
  await mkdir(dataDir)
  await shareKeys(
    dataDir,
    around(),
    async () => void (await issueIdentity(dataDir, { role: 'server', host: name }, new Date())),
  )
  return dataDir
}

const keysOf = async (dataDir: string) =>
  await Promise.all(
    [
      keyFileIn(keptStateOf(dataDir, 'server')),
      join(dataDir, 'fleet/ca.key'),
      join(dataDir, 'fleet/ca.crt'),
    ].map(async (file) => (await readFile(file)).toString('base64')),
  )

it('servers that start at once, and later ones, have the same keys, and what the authority signs is of one fleet', async () => {
  const servers = await Promise.all(['one', 'two', 'three'].map(startServer))
  servers.push(await startServer('later'))
  const [first, ...others] = await Promise.all(servers.map(keysOf))
  for (const keys of others) expect(keys).toEqual(first)
  const identity = await issueIdentity(servers[3] ?? '', { role: 'server', host: 'later' }, new Date())
  expect(identity).toContain(
    Buffer.from(first?.[2] ?? '', 'base64')
      .toString('utf8')
      .trim(),
  )
})

it('a server that takes the lead knows which addresses the one before gave to hosts', async () => {
  const [one, two] = [await startServer('one'), await startServer('two')]
  const file = (dataDir: string) => join(dataDir, 'fleet/hosts.json')
  await takeHosts(two, around())
  await expect(readFile(file(two))).rejects.toThrow('ENOENT')
  await writeFile(file(one), '[{"name":"east"}]\n')
  await keepHosts(one, { ...around(), clock: createTestClock() })
  await takeHosts(two, around())
  expect(await readFile(file(two), 'utf8')).toBe('[{"name":"east"}]\n')
  expect(await keysOf(two)).toEqual(await keysOf(one))
})

describe('the key of the secrets', () => {
  const keyFileOf = (dataDir: string) => keyFileIn(keptStateOf(dataDir, 'server'))
  const aroundRotation = () => ({ ...around(), clock: createTestClock() })
  let db: ReturnType<typeof openDatabase>
  let one: string
  let two: string
  const opensIn = async (dataDir: string) => await openDataKey({ db, keyFile: keyFileOf(dataDir) })
  const rotateIn = async (dataDir: string, keeper: KeyKeeper) =>
    await rotateKeyFile({ db, keyFile: keyFileOf(dataDir) }, keeper)

  beforeEach(async () => {
    const database = await createTestDatabase()
    db = openDatabase(database.url, silentLog)
    ;[one, two] = [await startServer('one'), await startServer('two')]
    await opensIn(one)
    return async () => {
      await db.destroy()
      await database.drop()
    }
  })

  it('is rotated by one server, and opens the database for another one once that has looked, and for a new one', async () => {
    await rotateIn(one, keeperOfKey(one, aroundRotation()))
    await opensIn(one)
    await expect(opensIn(two)).rejects.toThrow('put that file back')
    await takeKeys(two, around())
    await opensIn(two)
    await opensIn(await startServer('three'))
    await rotateIn(two, keeperOfKey(two, aroundRotation()))
    await takeKeys(one, around())
    await opensIn(one)
  })

  it.each([1, 2])(
    'is found by a new server after a rotation that was cut off at its %s. step, and after the next one',
    async (step) => {
      const keeper = keeperOfKey(one, aroundRotation())
      let steps = 0
      const cutOff: KeyKeeper = {
        ...keeper,
        keep: async (keys) => {
          if (++steps === step) throw new Error('the power failed')
          await keeper.keep(keys)
        },
      }
      await expect(rotateIn(one, cutOff)).rejects.toThrow('the power failed')
      await opensIn(await startServer('three'))
      await takeKeys(two, around())
      await rotateIn(two, keeperOfKey(two, aroundRotation()))
      await opensIn(await startServer('four'))
    },
  )
})
