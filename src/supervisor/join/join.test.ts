// A host joins: certificates, sockets and TLS are real. What is refused is refused before the token is used.

import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { type AddressInfo, connect as connectTcp, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { makeKey, signingRequest } from '../../certificates/signed.ts'
import { VERSION } from '../../lib/version.ts'
import { HOUR } from '../../lib/clock.ts'
import { memberOf } from '../../lib/fleet-identity.ts'
import { freePort } from '../../lib/free-port.ts'
import { silentLog } from '../../lib/log.ts'
import type { Address } from '../../lib/setting-values.ts'
import { listBlocks, takeBlockBack } from './blocks.ts'
import { openDoor } from './by-token.ts'
import type { NewMember } from './door.ts'
import { joinFleet } from './join.ts'
import { hostIdentitiesIn } from '../../processes/channel.ts'
import { findMembership, readIdentityFile } from './membership.ts'
import { type JoinToken, readToken, Refusal, writeToken } from './protocol.ts'

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

/** What doors have told the service. */
const entered: NewMember[] = []
const link = { host: '127.0.0.1', port: 7076 }
const refusals: string[] = []
const told = {
  link,
  log: silentLog,
  refused: (peer: string, why: string) => void refusals.push(`${peer} ${why}`),
  enter: async (host: NewMember) => void entered.push(host),
}

async function open(openMs = HOUR, name = 'east', enter = told.enter) {
  const at = { host: '127.0.0.1', port: 0 }
  const door = await openDoor({ ...told, dataDir, name, at, enter, openMs })
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

/** As a host does: its engine will listen on a free port. */
async function joinFrom(token: JoinToken, directory = own, reachedAt: Address | null = null) {
  const listen = { host: '127.0.0.1', port: await freePort('127.0.0.1') }
  return await joinFleet(token, { dataDir: directory, listen, reachedAt })
}

/** What the door answers to this line. */
async function ask(token: JoinToken, changes: Record<string, unknown>): Promise<string> {
  const key = await makeKey()
  const request = signingRequest(['east.server.berth.internal'], key).toString('base64')
  const host = { instance: 'east', subnet: '10.7.0.0/16', others: [] }
  const proof = 'x'.repeat(43)
  const engine = createServer((socket) => socket.end(`${proof}\n`)).listen(0, '127.0.0.1')
  await once(engine, 'listening')
  onTestFinished(() => void engine.close())
  const line = {
    version: VERSION,
    secret: token.secret,
    at: Date.now(),
    requests: { engine: request, gateway: request },
    engine: { host: '127.0.0.1', port: (engine.address() as AddressInfo).port },
    proof,
    ...host,
    ...changes,
  }
  const socket = connect({ host: token.host, port: token.port, rejectUnauthorized: false })
  let text = ''
  for await (const chunk of socket.once('secureConnect', () => socket.write(`${JSON.stringify(line)}\n`)))
    text += String(chunk)
  return text
}

it('a host with a token gets certificates for its engine and its gateway, whose keys are only in its own files', async () => {
  const door = await open()
  await joinFrom(readToken(writeToken(door.token)))
  const files = hostIdentitiesIn(own)
  const keys = new Set<string>()
  for (const role of ['engine', 'gateway'] as const) {
    const { key, certificate } = await readIdentityFile(files[role])
    expect(memberOf(new X509Certificate(certificate))).toEqual({ role, host: 'east' })
    expect((await stat(files[role])).mode & 0o777).toBe(0o600)
    keys.add(key)
  }
  expect(keys.size).toBe(2)
  expect(await door.joined).toBe('127.0.0.1')
})

it('the service is told where the engine is reached, and the host where its gateway finds the server', async () => {
  const door = await open()
  const membership = await joinFrom(door.token)
  expect(entered.at(-1)).toEqual({
    name: 'east',
    instance: 'east',
    engine: { host: '127.0.0.1', port: expect.any(Number) },
    node: null,
  })
  expect(membership).toMatchObject({ name: 'east', link, door: { port: door.token.port } })
  expect(await findMembership(own)).toEqual(membership)
})

it('an engine that the server does not reach is refused before the token is used', async () => {
  const door = await open()
  const port = await freePort('127.0.0.1')
  await expect(joinFrom(door.token, own, { host: '127.0.0.1', port })).rejects.toThrow(
    `the server does not reach its engine at 127.0.0.1:${port} (ECONNREFUSED): let it through there, or set BERTH_ENGINE_ADDRESS`,
  )
  expect(await ask(door.token, { proof: 'y'.repeat(43) })).toContain('another program answers')
  await joinFrom(door.token)
})

it('a host that the service refuses has no addresses afterwards, and its token is as it was', async () => {
  const south = await newHost('sout', '10.17.0.0/16')
  const reasons = ['south is the name of another machine']
  const door = await open(HOUR, 'south', async (host) => {
    const why = reasons.pop()
    if (why !== undefined) throw new Refusal(why)
    await told.enter(host)
  })
  await expect(joinFrom(door.token, south)).rejects.toThrow('south is the name of another machine')
  expect((await listBlocks(dataDir)).map(({ name }) => name)).not.toContain('south')
  expect(await findMembership(south)).toBe(null)
  await joinFrom(door.token, south)
  expect(await takeBlockBack(dataDir, 'south')).toBe(true)
})

it('a token works once, and then nothing listens', async () => {
  const door = await open()
  const [one, other] = await Promise.allSettled([joinFrom(door.token), joinFrom(door.token)])
  expect([one.status, other.status].toSorted()).toEqual(['fulfilled', 'rejected'])
  await expect(joinFrom(door.token)).rejects.toThrow('is used or too old')
})

it('a token that is too old does nothing, and its command ends with what to do', async () => {
  const door = await open(1)
  await expect(door.joined).rejects.toThrow('make another token')
  await expect(joinFrom(door.token)).rejects.toThrow('is used or too old')
})

it.each([
  ['another secret', { secret: 'x'.repeat(43) }, 'is not the one that this door was opened for'],
  ['a version far apart', { version: '0.9.0-old' }, 'it runs Berth 0.9.0-old and the server'],
  ['a clock minutes apart', { at: Date.now() - 120_000 }, 'the clocks are 1'],
  [
    'no signing request',
    { requests: { engine: 'AAAA', gateway: 'AAAA' } },
    'its signing requests are not in order',
  ],
  ['a field that is not known', { role: 'server' }, 'something else'],
])('%s is refused with a sentence, and leaves the token as it was', async (_what, changes, words) => {
  const door = await open()
  expect(await ask(door.token, changes)).toContain(words)
  // The operator sees it where the command waits.
  expect(refusals.at(-1)).toMatch(new RegExp(`^127\\.0\\.0\\.1 .*${words}`))
  await joinFrom(door.token)
})

it('names in a signing request do not count: the door signs for the engine and the gateway of the name that the operator gave', async () => {
  const door = await open()
  const answer = JSON.parse(await ask(door.token, {})) as {
    certificates: Record<'engine' | 'gateway', string>
  }
  for (const role of ['engine', 'gateway'] as const) {
    const certificate = new X509Certificate(answer.certificates[role])
    expect(certificate.subjectAltName).toBe(`DNS:east.${role}.berth.internal`)
    expect(certificate.subject).toBe('O=Berth')
  }
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
  await joinFrom(door.token)
})

describe('a host joins while', () => {
  const hold = async (token: JoinToken, localAddress: string, count: number, hasGreeted: boolean) => {
    for (let at = 0; at < count; at += 1) {
      const to = { host: token.host, port: token.port, localAddress }
      const socket = hasGreeted ? connect({ ...to, rejectUnauthorized: false }) : connectTcp(to)
      socket.on('error', () => {})
      onTestFinished(() => void socket.destroy())
      await Promise.race([once(socket, hasGreeted ? 'secureConnect' : 'connect'), once(socket, 'close')])
    }
  }

  it.each([
    ['another address holds forty silent connections', ['127.0.0.9'], 40, false],
    ['its own address holds forty silent connections', ['127.0.0.1'], 40, false],
    ['forty connections of its own address have shaken hands and say nothing', ['127.0.0.1'], 40, true],
    [
      'twelve addresses hold four silent connections each',
      Array.from({ length: 12 }, (_, at) => `127.0.1.${at + 1}`),
      4,
      false,
    ],
  ])('%s', async (_what, addresses, count, hasGreeted) => {
    const door = await open()
    for (const address of addresses) await hold(door.token, address, count, hasGreeted)
    await joinFrom(door.token)
  })
})

it('a host tells nothing to a machine whose certificate is another one', async () => {
  const [door, other] = [await open(), await open()]
  const mixed = { ...door.token, port: other.token.port }
  await expect(joinFrom(mixed)).rejects.toThrow('another machine answers there')
  await joinFrom(door.token)
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
  const opened = openDoor({ ...told, dataDir, name: 'west', at: at(token.port) })
  await expect(opened).rejects.toThrow(`(${code}): name an address of its own and a free port`)
})

describe('the addresses of units', () => {
  const joinAs = async (name: string, directory: string) => {
    const door = await open(HOUR, name)
    await joinFrom(door.token, directory)
  }

  it('of a host that has had none, and chose those of another, become others when it joins', async () => {
    const west = await newHost('west', '10.8.0.0/16')
    await joinAs('west', west)
    const blocks = await listBlocks(dataDir)
    const given = blocks.find(({ name }) => name === 'west')?.subnet
    expect(['10.7.0.0/16', '10.8.0.0/16']).not.toContain(given)
    expect(await instanceIn(west)).toEqual({ id: 'west', subnet: given })
    // Joining again, for another certificate, keeps them.
    await joinAs('west', west)
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
      await joinAs('east', own)
      await expect(joinAs('north', north)).rejects.toThrow(
        `the addresses of its units, ${subnet}, are those of ${owner} too; join it with an empty BERTH_DATA_DIR`,
      )
      expect(await instanceIn(north)).toEqual({ id: 'nort', subnet })
      expect((await listBlocks(dataDir)).map(({ name }) => name)).not.toContain('north')
    },
  )

  it('are of one machine: neither a name nor a data directory joins twice', async () => {
    await joinAs('east', own)
    const other = await newHost('othr', '10.9.0.0/16')
    await expect(joinAs('east', other)).rejects.toThrow('east is the name of another machine')
    await expect(joinAs('south', own)).rejects.toThrow('it has joined as east')
    await expect(joinAs('south', dataDir)).rejects.toThrow("the data directory of the server's machine")
    expect(await takeBlockBack(dataDir, 'east')).toBe(true)
    await joinAs('east', other)
    expect(await takeBlockBack(dataDir, 'east')).toBe(true)
    expect(await takeBlockBack(dataDir, 'east')).toBe(false)
  })
})
