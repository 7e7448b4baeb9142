// The keys of several servers in a cluster, in a Secret of an API server in memory.

import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createTestClock } from '../../../test/support/clock.ts'
import { type FakeApiServer, startFakeApiServer } from '../../../test/support/kubernetes/fake-api-server.ts'
import { issueIdentity } from '../../certificates/fleet-ca.ts'
import { type Api, openApi } from '../../kubernetes/api.ts'
import { keyFileIn } from '../../processes/channel.ts'
import { keptStateOf } from '../process-command.ts'
import { keepHosts, shareKeys, takeHosts } from './kept-keys.ts'

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
