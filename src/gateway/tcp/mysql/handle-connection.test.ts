// Connections to MySQL endpoints, with fake servers as units and a client that sends what real clients send
// (reliability S33).

import { once } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls, createSecureContext, TLSSocket } from 'node:tls'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import {
  certificate,
  type RawOrigin,
  startGateway,
  startRawOrigin,
  type TestGateway,
} from '../../../../test/support/gateway.ts'
import { freePort } from '../../../lib/free-port.ts'
import { errorPacket } from './messages.ts'
import { type Packet, readPacket, writePacket } from './packets.ts'
import type { Route } from '../../route.ts'

const MOST = 100_000
const OK = Buffer.from('00000002000000', 'hex')
const SALT = Buffer.alloc(20, 0x55)
const can = { tls: 0x800, all: 0x00bf_ffff }

let gateway: TestGateway
let origins: RawOrigin[]
let clients: Socket[]

beforeEach(async () => {
  gateway = await startGateway({ headersMs: 1200 })
  origins = []
  clients = []
})
afterEach(async () => {
  for (const client of clients) client.destroy()
  await Promise.all(origins.map((origin) => origin.close()))
  await gateway.close()
})

const mysql = (more: Partial<Route> & { secret?: string } = {}) => ({ protocol: 'mysql' as const, ...more })

async function serve(onConnection: (unit: Socket) => unknown): Promise<number> {
  const origin = await startRawOrigin((socket) => {
    // The client may disconnect at any point.
    void Promise.resolve(onConnection(socket)).catch(() => socket.destroy())
  })
  origins.push(origin)
  return origin.port
}

const join = (...parts: (string | Buffer)[]) =>
  Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : part)))

/** Builds the greeting of a server with these capabilities. */
function greeting(capabilities: number): Buffer {
  const body = Buffer.alloc(7 + 1 + 10)
  body.writeUInt16LE(capabilities & 0xffff, 0)
  body.writeUInt16LE(capabilities >>> 16, 5)
  body.writeUInt8(21, 7)
  const head = join('\x0a10.11.2-MariaDB\0', '\x01\0\0\0', SALT.subarray(0, 8), '\0')
  return writePacket({ number: 0, payload: join(head, body, SALT.subarray(8), '\0x\0') })
}

const packet = async (socket: Socket): Promise<Packet> => {
  const found = await readPacket(socket, MOST)
  if (found === null) throw new Error('the other side has ended')
  return found
}
const say = (socket: Socket, number: number, payload: Buffer) =>
  socket.write(writePacket({ number, payload }))

type Served = { login: Packet; hasTls: boolean }

/** Logs in a client that answers the salt with `right`, checks packet numbers like a real server, then echoes. */
async function letIn(
  unit: Socket,
  seen: Served[],
  { hasTls = false, plugin = 'mysql_native_password' } = {},
) {
  unit.write(greeting(hasTls ? can.all : can.all & ~can.tls))
  let socket = unit
  if (hasTls) {
    expect((await packet(unit)).payload).toHaveLength(32)
    const secureContext = createSecureContext({ cert: certificate(), key: certificate() })
    socket = new TLSSocket(unit, { isServer: true, secureContext })
    socket.on('error', () => {})
  }
  const login = await packet(socket)
  seen.push({ login, hasTls: (login.payload.readUInt32LE(0) & can.tls) !== 0 })
  let at = login.number + 1
  say(socket, at, join('\xfe', plugin, '\0', SALT, '\0'))
  const answer = await packet(socket)
  const isRight = answer.number === at + 1 && text(answer) === 'right'
  at += 2
  if (plugin === 'caching_sha2_password' && isRight) {
    const knowsHash = seen.length > 1
    say(socket, at, join(knowsHash ? '\x01\x03' : '\x01\x04'))
    if (!knowsHash) expect(text(await packet(socket))).toBe('password')
    at += knowsHash ? 1 : 2
  }
  if (isRight) say(socket, at, OK)
  else socket.end(errorPacket(at, { code: 1045, state: '28000', message: 'Access denied' }))
  socket.on('data', (chunk) => socket.write(chunk))
}

/** Builds the client’s login packet. */
function login(user: string, capabilities = 0x003a_a28d): Buffer {
  const head = Buffer.alloc(32)
  head.writeUInt32LE(capabilities, 0)
  head.writeUInt32LE(0x0100_0000, 4)
  head.writeUInt8(45, 8)
  return join(head, `${user}\0\x05guessshop\0mysql_native_password\0\x03\x01a\x00`)
}

const SSL_REQUEST = login('').subarray(0, 32)
SSL_REQUEST.writeUInt32LE(0x003a_aa8d, 0)

async function begin(port = gateway.mysqlPort): Promise<{ client: Socket; greeting: Packet }> {
  const client = connectTcp(port, '127.0.0.1')
  clients.push(client)
  client.on('error', () => {})
  return { client, greeting: await packet(client) }
}

/** Completes the TLS handshake and sends nothing else. */
async function greet(servername?: string, port?: number): Promise<TLSSocket> {
  const { client } = await begin(port)
  say(client, 1, SSL_REQUEST)
  const secure = connectTls({
    socket: client,
    rejectUnauthorized: false,
    ...(servername ? { servername } : {}),
  })
  clients.push(secure)
  secure.on('error', () => {})
  await once(secure, 'secureConnect')
  return secure
}

async function enter(servername: string | undefined, user: string): Promise<TLSSocket> {
  const client = await greet(servername)
  say(client, 2, login(user))
  return client
}

const text = ({ payload }: Packet) => payload.toString('latin1')

/** Returns the packet number, code and message of the error that a client gets. */
async function refusal(client: Socket): Promise<string> {
  const { number, payload } = await packet(client)
  expect(payload[0]).toBe(0xff)
  return `${number} ${payload.readUInt16LE(1)} ${payload.subarray(3).toString()}`
}

/** Advances the clock until the answer arrives. */
async function whileTimePasses<T>(answer: Promise<T>): Promise<T> {
  let isThere = false
  void answer.finally(() => (isThere = true))
  while (!isThere) {
    await delay(10)
    gateway.clock.advance(300)
  }
  return await answer
}

const asleep = { state: 'sleeping', stoppedReason: 'idle' } as const
const wakeAll = () => {
  gateway.onWake = async (route) => ({ kind: 'running', route: { ...route, state: 'running' } })
}

describe('a MySQL client', () => {
  it.each([false, true])('is logged in by the server it names (server with TLS: %s)', async (hasTls) => {
    const seen: Served[] = []
    const host = gateway.expose(await serve((unit) => letIn(unit, seen, { hasTls })), mysql(asleep))
    wakeAll()
    const client = await greet(host)
    await delay(50)
    expect(gateway.wakes).toHaveLength(0)
    say(client, 2, login('keeper'))
    const target = await packet(client)
    expect(target.number).toBe(3)
    expect(text(target)).toContain(`mysql_native_password\0${SALT.toString()}`)
    say(client, 4, join('right'))
    const welcome = await packet(client)
    expect([welcome.number, welcome.payload]).toEqual([5, OK])
    client.write('\x01\0\0\0\x0e')
    expect(text(await packet(client))).toBe('\x0e')
    expect(gateway.wakes).toHaveLength(1)
    expect(seen[0]?.hasTls).toBe(hasTls)
    const sent = seen[0] ? text(seen[0].login) : ''
    expect(sent.slice(32)).toBe('keeper\0\0shop\0auth_unknown_plugin\0\x03\x01a\x00')
  })

  it('gets the server’s own error for a wrong password', async () => {
    const host = gateway.expose(await serve((unit) => letIn(unit, [])), mysql())
    const client = await enter(host, 'keeper')
    await packet(client)
    say(client, 4, join('wrong'))
    expect(await refusal(client)).toBe('5 1045 #28000Access denied')
    await once(client, 'close')
    await expect.poll(() => gateway.gateway.count().visits).toBe(0)
  })

  it('may be asked for its full password by a server with TLS, which then knows its hash', async () => {
    const seen: Served[] = []
    const options = { hasTls: true, plugin: 'caching_sha2_password' }
    const host = gateway.expose(await serve((unit) => letIn(unit, seen, options)), mysql())
    for (const knowsHash of [false, true]) {
      const client = await enter(host, 'keeper')
      await packet(client)
      say(client, 4, join('right'))
      expect(text(await packet(client))).toBe(knowsHash ? '\x01\x03' : '\x01\x04')
      if (!knowsHash) say(client, 6, join('password'))
      expect(await packet(client)).toEqual({ number: knowsHash ? 6 : 7, payload: OK })
    }
  })

  it.each(['caching_sha2_password', 'mysql_clear_password', 'dialog'])(
    'is never asked for its full password by a server without TLS: %s',
    async (plugin) => {
      const host = gateway.expose(await serve((unit) => letIn(unit, [], { plugin })), mysql())
      const client = await enter(host, 'keeper')
      if (plugin === 'caching_sha2_password') {
        await packet(client)
        say(client, 4, join('right'))
      }
      expect(await refusal(client)).toMatch(/^[35] 1251 #08004.*has no TLS/)
    },
  )

  it('without SNI can name its unit in front of its user name', async () => {
    const seen: Served[] = []
    const secret = 'a'.repeat(26)
    const host = gateway.expose(await serve((unit) => letIn(unit, seen)), mysql({ secret }))
    const [label = ''] = host.split('.')
    const client = await enter(undefined, `${label}.keeper.of.all`)
    say(client, 4, (await packet(client), join('right')))
    expect((await packet(client)).payload).toEqual(OK)
    expect(seen[0] && text(seen[0].login).slice(32)).toMatch(/^keeper\.of\.all\0/)
    const stranger = await enter(undefined, `${label.replace(secret, 'b'.repeat(26))}.keeper`)
    expect(await refusal(stranger)).toMatch(/nothing at this address/)
    expect(seen).toHaveLength(1)
  })

  it('needs no name on the dedicated port of an endpoint', async () => {
    const seen: Served[] = []
    const host = gateway.expose(await serve((unit) => letIn(unit, seen)), mysql())
    const port = await freePort('127.0.0.1')
    gateway.endpointPorts.push({ port, name: host.split('.')[0] ?? '', protocol: 'mysql' })
    const client = await vi.waitUntil(() => greet(undefined, port).catch(() => null))
    say(client, 2, login('keeper'))
    expect((await packet(client)).payload[0]).toBe(0xfe)
    expect(seen).toHaveLength(1)
  })

  it.each(['by its name', 'at the port of its endpoint'])(
    'can kill by the id from its greeting, which is translated to the server’s own: %s',
    async (how) => {
      const host = gateway.expose(await serve((unit) => letIn(unit, [])), mysql())
      let port = gateway.mysqlPort
      if (how !== 'by its name') {
        port = await freePort('127.0.0.1')
        gateway.endpointPorts.push({ port, name: host.split('.')[0] ?? '', protocol: 'mysql' })
      }
      const { client: raw, greeting } = await vi.waitUntil(() => begin(port).catch(() => null))
      const id = greeting.payload.readUInt32LE(greeting.payload.indexOf(0) + 1)
      const servername = how === 'by its name' ? host : ''
      say(raw, 1, SSL_REQUEST)
      const client = connectTls({ socket: raw, rejectUnauthorized: false, servername })
      clients.push(client)
      say(client, 2, login('keeper'))
      await packet(client)
      say(client, 4, join('right'))
      expect((await packet(client)).payload).toEqual(OK)
      say(client, 0, join(`\x03KILL QUERY ${id}`))
      expect(text(await packet(client))).toBe('\x03KILL QUERY 1')
      say(client, 0, join('\x03KILL QUERY 77'))
      expect(text(await packet(client))).toBe('\x03KILL QUERY 77')
    },
  )

  it('that names no unit is told how to', async () => {
    for (const user of ['root', 'first.last']) {
      const client = await enter(undefined, user)
      expect(await refusal(client)).toMatch(/^3 1105 #08004.*NAME\.USER/)
    }
  })

  it('without TLS is told to use it', async () => {
    const { client } = await begin()
    say(client, 1, login('keeper'))
    expect(await refusal(client)).toMatch(/^2 3159 #HY000.*--ssl/)
  })

  it('gets an error for an unknown name and for a unit of another protocol', async () => {
    const other = gateway.expose(1, { protocol: 'redis' })
    for (const host of [other, 'nobody-aaaaaaaaaa.berth.localhost']) {
      const client = await enter(host, 'keeper')
      expect(await refusal(client)).toMatch(/^3 1105 #08004There is nothing/)
    }
  })

  it('is told why its unit is not available', async () => {
    const host = gateway.expose(1, mysql({ state: 'stopped', stoppedReason: 'user' }))
    expect(await refusal(await enter(host, 'keeper'))).toMatch(/This unit is stopped/)
  })

  it('gets a unique salt without zero bytes', async () => {
    const salts = new Set<string>()
    for (let count = 0; count < 20; count += 1) {
      const { greeting } = await begin()
      const at = greeting.payload.indexOf(0) + 5
      const salt = join(greeting.payload.subarray(at, at + 8), greeting.payload.subarray(at + 27, at + 39))
      expect(salt.every((byte) => byte > 0 && byte < 127)).toBe(true)
      salts.add(salt.toString('latin1'))
    }
    expect(salts.size).toBe(20)
  })

  it('waits for a server that is starting, but gets other errors of the server at once', async () => {
    let sessions = 0
    const port = await serve((unit) => {
      sessions += 1
      if (sessions === 1) unit.end()
      else if (sessions === 2) unit.end(errorPacket(0, { code: 1053, state: '08S01', message: 'later' }))
      else if (sessions === 3) return letIn(unit, [])
      else unit.end(errorPacket(0, { code: 1040, state: '08004', message: 'Too many connections' }))
      return null
    })
    const host = gateway.expose(port, mysql(asleep))
    wakeAll()
    const client = await enter(host, 'keeper')
    const answer = packet(client)
    for (let round = 0; round < 10; round += 1) {
      await delay(20)
      gateway.clock.advance(300)
    }
    expect((await answer).payload[0]).toBe(0xfe)
    expect(sessions).toBe(3)
    expect(await refusal(await enter(host, 'keeper'))).toBe('3 1040 #08004Too many connections')
  })

  it('gets error 1053 when its unit goes away, unless a response is in progress', async () => {
    const host = gateway.expose(await serve((unit) => letIn(unit, [])), mysql())
    const [[name, route] = ['', null]] = gateway.routes
    for (const isHalf of [false, true]) {
      if (route) gateway.routes.set(name, route)
      const client = await enter(host, 'keeper')
      await packet(client)
      say(client, 4, join('right'))
      await packet(client)
      const sent = isHalf ? join('\x09\0\0\x01half') : writePacket({ number: 1, payload: OK })
      client.write(sent)
      await once(client, 'readable')
      expect(client.read()).toEqual(sent)
      gateway.routes.delete(name)
      const last = isHalf ? readPacket(client, MOST) : refusal(client)
      await gateway.later(500)
      if (isHalf) expect(await last).toBeNull()
      else expect(await last).toMatch(/^1 1053 #08S01/)
    }
  })
})

describe('the shared MySQL port', () => {
  it.each([
    ['another protocol', 'GET / HTTP/1.1\r\n\r\n'],
    ['TLS without a TLS request', '\x16\x03\x01\x02\x00\x01\x00\x01'],
    ['a login with a wrong packet number', '\x20\0\0\x07'.padEnd(36, '\xff')],
    ['a login of an old protocol', '\x20\0\0\x01'.padEnd(36, '\0')],
    ['a truncated login', '\x20\0\0\x01\xff'],
    ['a silent client', ''],
  ])('closes the connection and wakes no unit for %s', async (_what, bytes) => {
    const { client } = await begin()
    client.write(join(bytes))
    expect(await readPacket(client, MOST)).toBeNull()
    expect(gateway.wakes).toEqual([])
  })

  it.each([
    ['out of order', writePacket({ number: 3, payload: login('keeper') })],
    ['cut off', writePacket({ number: 2, payload: login('keeper').subarray(0, 40) })],
    ['too long', join('\xff\xff\xff\x02')],
  ])('does not wake the unit for a login that is %s', async (_what, bytes) => {
    const client = await greet(gateway.expose(1, mysql(asleep)))
    client.write(bytes)
    expect(await refusal(client)).toMatch(/^3 1043 #08S01/)
    expect([gateway.wakes, gateway.use]).toEqual([[], []])
  })

  it('closes a connection that stays silent after the TLS handshake within 5 seconds', async () => {
    const client = await greet(gateway.expose(1, mysql()))
    // The handshake completes for the client before it completes for the gateway.
    await expect.poll(() => gateway.gateway.count().visits).toBe(1)
    const closed = once(client, 'close')
    client.resume()
    await gateway.later(5000)
    await closed
    await expect.poll(() => gateway.gateway.count().visits).toBe(0)
  })

  it('cleans up the session when either side disconnects after any packet', async () => {
    for (let last = 0; last < 4; last += 1) {
      for (const whose of ['client', 'unit']) {
        const port = await serve(async (unit) => {
          if (whose === 'unit' && last === 0) return unit.resetAndDestroy()
          unit.write(greeting(can.all & ~can.tls))
          if (whose === 'unit' && last === 1) return unit.resetAndDestroy()
          const { number } = await packet(unit)
          say(unit, number + 1, join('\xfemysql_native_password\0', SALT, '\0'))
          if (whose === 'unit' && last === 2) return unit.resetAndDestroy()
          await packet(unit)
          say(unit, number + 3, OK)
          return unit.resetAndDestroy()
        })
        const { client: raw } = await begin()
        if (whose === 'client' && last === 0) raw.resetAndDestroy()
        else {
          say(raw, 1, SSL_REQUEST)
          const servername = gateway.expose(port, mysql())
          const client = connectTls({ socket: raw, rejectUnauthorized: false, servername })
          client.on('error', () => {})
          await once(client, 'secureConnect')
          if (whose === 'unit' || last > 1) say(client, 2, login('keeper'))
          if (whose === 'unit' || last > 2) {
            const asked = await whileTimePasses(readPacket(client, MOST))
            if (asked?.payload[0] === 0xfe) say(client, 4, join('right'))
          }
          if (whose === 'client') raw.resetAndDestroy()
          // The end is noticed only while data is read.
          else if (!client.resume().closed) await once(client, 'close')
        }
        await expect
          .poll(() => {
            gateway.clock.advance(500)
            return gateway.gateway.count()
          })
          .toEqual({ connections: 0, visits: 0 })
      }
    }
    const client = await enter(gateway.expose(await serve((unit) => letIn(unit, [])), mysql()), 'keeper')
    expect((await packet(client)).payload[0]).toBe(0xfe)
  })

  it('closes only the connection of a unit that sends malformed packets', async () => {
    const answers = ['', 'HTTP/1.1 400 Bad Request\r\n\r\n', '\x05\0\0\0\x0a5.5\0', '\xff\xff\xff\0']
    for (const answer of answers) {
      const host = gateway.expose(await serve((unit) => unit.end(join(answer))), mysql())
      const client = await enter(host, 'keeper')
      expect(await whileTimePasses(refusal(client))).toMatch(
        /^3 1105 #08004(Nothing answers|The unit did not answer)/,
      )
    }
  })
})
