// A host joins: certificates, sockets and TLS are real. What is refused is refused before the token is used.

import { X509Certificate } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { makeKey, signingRequest } from '../../certificates/signed.ts'
import { HOUR } from '../../lib/clock.ts'
import { memberOf, parseIdentity } from '../../lib/fleet-identity.ts'
import { silentLog } from '../../lib/log.ts'
import { listBlocks, takeBlockBack } from './blocks.ts'
import { openDoor } from './door.ts'
import { joinFleet } from './join.ts'
import { type JoinToken, ownVersion, readToken, writeToken } from './protocol.ts'

let dataDir = ''
let there = ''
/** The data directory of the host. */
let own = ''
const instanceIn = async (directory: string): Promise<unknown> =>
  JSON.parse(await readFile(join(directory, 'instance.json'), 'utf8'))
const writeInstance = async (directory: string, id: string, subnet: string) =>
  await writeFile(join(directory, 'instance.json'), JSON.stringify({ id, subnet }))

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'berth-join-door-'))
  there = await mkdtemp(join(tmpdir(), 'berth-join-host-'))
  own = await newHost('east', '10.7.0.0/16')
  await writeInstance(dataDir, 'main', '10.8.0.0/16')
})
afterAll(async () => {
  await rm(dataDir, { recursive: true })
  await rm(there, { recursive: true })
})

async function open(openMs = HOUR, name = 'east') {
  const at = { host: '127.0.0.1', port: 0 }
  const door = await openDoor({ dataDir, name, at, log: silentLog, openMs })
  onTestFinished(() => door.close())
  door.joined.catch(() => {})
  return door
}

/** Returns the data directory of another machine. */
async function newHost(id: string, subnet: string): Promise<string> {
  const directory = await mkdtemp(join(there, 'data-'))
  await writeInstance(directory, id, subnet)
  return directory
}

let files = 0
const newFile = () => join(there, `${(files += 1)}.pem`)

/** What the door answers to this line. */
async function ask(token: JoinToken, changes: Record<string, unknown>): Promise<string> {
  const key = await makeKey()
  const request = signingRequest(['east.server.berth.internal'], key).toString('base64')
  const host = { instance: 'east', subnet: '10.7.0.0/16', others: [] }
  const line = {
    version: await ownVersion(),
    secret: token.secret,
    at: Date.now(),
    request,
    ...host,
    ...changes,
  }
  const socket = connect({ host: token.host, port: token.port, rejectUnauthorized: false })
  let text = ''
  for await (const chunk of socket.once('secureConnect', () => socket.write(`${JSON.stringify(line)}\n`)))
    text += String(chunk)
  return text
}

it('a host with a token gets a certificate for its name, and its key is only in its own file', async () => {
  const door = await open()
  const file = newFile()
  await joinFleet(readToken(writeToken(door.token)), { file, dataDir: own })
  const identity = parseIdentity(await readFile(file, 'utf8'))
  expect(memberOf(new X509Certificate(identity.certificate))).toEqual({ role: 'engine', host: 'east' })
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  expect(await door.joined).toBe('127.0.0.1')
})

it('a token works once, and then nothing listens', async () => {
  const door = await open()
  const [one, other] = await Promise.allSettled([
    joinFleet(door.token, { file: newFile(), dataDir: own }),
    joinFleet(door.token, { file: newFile(), dataDir: own }),
  ])
  expect([one.status, other.status].toSorted()).toEqual(['fulfilled', 'rejected'])
  const file = newFile()
  await expect(joinFleet(door.token, { file, dataDir: own })).rejects.toThrow('is used or too old')
  await expect(stat(file)).rejects.toThrow('ENOENT')
})

it('a token that is too old does nothing, and its command ends with what to do', async () => {
  const door = await open(1)
  await expect(door.joined).rejects.toThrow('make another token')
  await expect(joinFleet(door.token, { file: newFile(), dataDir: own })).rejects.toThrow('is used or too old')
})

it.each([
  ['another secret', { secret: 'x'.repeat(43) }, 'is not the one that this door was opened for'],
  ['another version', { version: '0.0.0-old' }, 'it runs Berth 0.0.0-old and the server'],
  ['a clock minutes apart', { at: Date.now() - 120_000 }, 'the clocks are 1'],
  ['no signing request', { request: 'AAAA' }, 'its signing request is not in order'],
  ['a field that is not known', { role: 'server' }, 'something else'],
])('%s is refused with a sentence, and leaves the token as it was', async (_what, changes, words) => {
  const door = await open()
  expect(await ask(door.token, changes)).toContain(words)
  await joinFleet(door.token, { file: newFile(), dataDir: own })
})

it('names in a signing request do not count: the door signs for an engine of the name that the operator gave', async () => {
  const door = await open()
  const { certificates } = JSON.parse(await ask(door.token, {})) as { certificates: string }
  const certificate = new X509Certificate(certificates)
  expect(certificate.subjectAltName).toBe('DNS:east.engine.berth.internal')
  expect(certificate.subject).toBe('O=Berth')
})

it('the door closes after twenty connections with a wrong token', async () => {
  const door = await open()
  for (let tries = 0; tries < 20; tries += 1) await ask(door.token, { secret: 'wrong' })
  await expect(door.joined).rejects.toThrow('had a wrong token')
})

it('a line that does not end is not read on, and others are served meanwhile', async () => {
  const door = await open()
  const socket = connect({ host: door.token.host, port: door.token.port, rejectUnauthorized: false })
  socket.on('error', () => {})
  socket.resume()
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  socket.write('x'.repeat(100_000))
  await closed
  await joinFleet(door.token, { file: newFile(), dataDir: own })
})

it('a host tells nothing to a machine whose certificate is another one, and keeps a file that is there', async () => {
  const [door, other] = [await open(), await open()]
  const mixed = { ...door.token, port: other.token.port }
  await expect(joinFleet(mixed, { file: newFile(), dataDir: own })).rejects.toThrow(
    'another machine answers there',
  )
  const file = newFile()
  await writeFile(file, 'in use')
  await expect(joinFleet(door.token, { file, dataDir: own })).rejects.toThrow('is there already')
  expect(await readFile(file, 'utf8')).toBe('in use')
  await expect(joinFleet(door.token, { file: join(there, 'none', 'a.pem'), dataDir: own })).rejects.toThrow(
    'cannot be written (ENOENT)',
  )
  await joinFleet(door.token, { file: newFile(), dataDir: own })
})

it('no key of a host is ever on the machine of the server', async () => {
  expect((await readdir(join(dataDir, 'fleet'))).toSorted()).toEqual([
    'ca.crt',
    'ca.key',
    'hosts.json',
    'hosts.json.lock',
    'openssl.cnf',
  ])
})

it.each([
  ['an address of another machine', () => ({ host: '192.0.2.1', port: 7076 }), 'EADDRNOTAVAIL'],
  ['a port in use', (port: number) => ({ host: '127.0.0.1', port }), 'EADDRINUSE'],
])('the door does not open at %s, and says what to name instead', async (_what, at, code) => {
  const { token } = await open()
  const opened = openDoor({ dataDir, name: 'west', at: at(token.port), log: silentLog })
  await expect(opened).rejects.toThrow(`(${code}): name an address of its own and a free port`)
})

describe('the addresses of units', () => {
  const joinFrom = async (name: string, directory: string) => {
    const door = await open(HOUR, name)
    const file = newFile()
    await joinFleet(door.token, { file, dataDir: directory })
    return file
  }

  it('of a host that has had none, and chose those of another, become others when it joins', async () => {
    const west = await newHost('west', '10.8.0.0/16')
    await joinFrom('west', west)
    const blocks = await listBlocks(dataDir)
    const given = blocks.find(({ name }) => name === 'west')?.subnet
    expect(['10.7.0.0/16', '10.8.0.0/16']).not.toContain(given)
    expect(await instanceIn(west)).toEqual({ id: 'west', subnet: given })
    // Joining again, for another certificate, keeps them.
    await joinFrom('west', west)
    expect(await listBlocks(dataDir)).toEqual(expect.arrayContaining(blocks))
  })

  it.each([
    ["the server's machine", '10.8.0.0/16'],
    ['east', '10.7.0.0/16'],
  ])(
    'of a host that has had units, and overlap those of %s, are refused with what to do',
    async (owner, subnet) => {
      const north = await newHost('nort', subnet)
      await writeFile(join(north, 'pool.btrfs'), '')
      await joinFrom('east', own)
      await expect(joinFrom('north', north)).rejects.toThrow(
        `the addresses of its units, ${subnet}, are those of ${owner} too; join it with an empty BERTH_DATA_DIR`,
      )
      expect(await instanceIn(north)).toEqual({ id: 'nort', subnet })
      expect((await listBlocks(dataDir)).map(({ name }) => name)).not.toContain('north')
    },
  )

  it('are of one machine: neither a name nor a data directory joins twice', async () => {
    await joinFrom('east', own)
    const other = await newHost('othr', '10.9.0.0/16')
    await expect(joinFrom('east', other)).rejects.toThrow('east is the name of another machine')
    await expect(joinFrom('south', own)).rejects.toThrow('it has joined as east')
    await expect(joinFrom('south', dataDir)).rejects.toThrow("the data directory of the server's machine")
    expect(await takeBlockBack(dataDir, 'east')).toBe(true)
    await joinFrom('east', other)
    expect(await takeBlockBack(dataDir, 'east')).toBe(true)
    expect(await takeBlockBack(dataDir, 'east')).toBe(false)
  })
})
