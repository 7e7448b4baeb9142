// What a host does when it starts: it joins, goes on as what it is, or says what to do.

import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { loadConfig } from '../../config.ts'
import { freePort } from '../../lib/free-port.ts'
import { silentLog } from '../../lib/log.ts'
import { openDoor } from './by-token.ts'
import { joinAtStart, refuseOtherRole } from './join-at-start.ts'
import { hostIdentitiesIn } from '../../processes/channel.ts'
import { writeToken } from './protocol.ts'

let server: string
let own: string
const env: Record<string, string> = { BERTH_ROLE: 'host' }

beforeAll(async () => {
  server = await mkdtemp(join(tmpdir(), 'berth-start-server-'))
  own = await mkdtemp(join(tmpdir(), 'berth-start-host-'))
  await writeFile(join(server, 'instance.json'), JSON.stringify({ id: 'main', subnet: '10.8.0.0/16' }))
  await writeFile(join(own, 'instance.json'), JSON.stringify({ id: 'east', subnet: '10.7.0.0/16' }))
  env['BERTH_DATA_DIR'] = own
  env['BERTH_ENGINE_TLS'] = `127.0.0.1:${await freePort('127.0.0.1')}`
})
afterAll(async () => {
  for (const directory of [server, own]) await rm(directory, { recursive: true })
})

async function makeToken(): Promise<string> {
  const at = { host: '127.0.0.1', port: 0 }
  const enter = async () => {}
  const door = await openDoor({ dataDir: server, name: 'east', at, link: null, enter, log: silentLog })
  door.joined.catch(() => {})
  onTestFinished(() => door.close())
  return writeToken(door.token)
}

const start = async (token?: string) =>
  await joinAtStart(loadConfig(token === undefined ? env : { ...env, BERTH_JOIN: token }))
const engineFile = async () => await readFile(hostIdentitiesIn(own).engine, 'utf8')

it('a machine that has not joined says how it does', async () => {
  await expect(start()).rejects.toThrow('has not joined a Berth yet: run "npm run hosts -- join-token NAME')
  await expect(start('berth-join-x')).rejects.toThrow('This is no join token')
})

it('a host keeps what it got, whether its used token is still set or not', async () => {
  const token = await makeToken()
  expect(await start(token)).toMatchObject({ name: 'east' })
  const before = await engineFile()
  expect(await start(token)).toMatchObject({ name: 'east' })
  expect(await start()).toMatchObject({ name: 'east' })
  expect(await engineFile()).toBe(before)
})

it('a host joins again with another token, and goes on with its certificate where that fails', async () => {
  const before = await engineFile()
  await start(await makeToken())
  const renewed = await engineFile()
  expect(renewed).not.toBe(before)
  const late = await makeToken()
  await start(late)
  // The door of this one is closed, and it is not the token that the host has used last.
  const other = await makeToken()
  await start(other)
  const kept = await engineFile()
  expect(await start(late)).toMatchObject({ name: 'east' })
  expect(await engineFile()).toBe(kept)
})

it('a host whose certificate cannot be read says how it gets another one, and gets it', async () => {
  await writeFile(hostIdentitiesIn(own).engine, 'damaged')
  await expect(start()).rejects.toThrow(/engine\.pem cannot be used .* start again with BERTH_JOIN=TOKEN/)
  expect(await start(await makeToken())).toMatchObject({ name: 'east' })
})

it('a server without an engine does not start on a data directory with units', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'berth-alone-'))
  await refuseOtherRole({ role: 'server', dataDir: directory })
  await mkdir(join(directory, 'machines/unit_1'), { recursive: true })
  await expect(refuseOtherRole({ role: 'server', dataDir: directory })).rejects.toThrow(
    'has machines or disks of 1 units, and BERTH_ROLE=server has no engine for them',
  )
  await refuseOtherRole({ role: 'all', dataDir: directory })
  await rm(directory, { recursive: true })
})

it('neither a host nor a Berth with a server starts on a data directory of the other', async () => {
  await expect(refuseOtherRole({ role: 'all', dataDir: own })).rejects.toThrow(
    'start it with BERTH_ROLE=host',
  )
  await refuseOtherRole({ role: 'all', dataDir: server })
  await writeFile(join(server, 'credentials.json'), '{}')
  await expect(refuseOtherRole({ role: 'host', dataDir: server })).rejects.toThrow(
    'is that of a Berth with a server of its own: set BERTH_DATA_DIR to an empty directory',
  )
})
