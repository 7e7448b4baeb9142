// Connections to TCP endpoints, with fake servers as units and clients that send what real clients send (reliability
// S33).

import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  type RawOrigin,
  startGateway,
  startRawOrigin,
  type TestGateway,
} from '../../../test/support/gateway.ts'
import { READY, SSL_REQUEST, STARTUP } from '../../../test/support/postgres-messages.ts'
import { HOUR } from '../../lib/clock.ts'
import { fatalError } from './postgres/messages.ts'
import type { Route } from '../route.ts'

const GSS_REQUEST = Buffer.from('0000000804d21630', 'hex')
const CANCEL = Buffer.from('0000001004d2162e0000000100000002', 'hex')
const PING = '*1\r\n$4\r\nPING\r\n'

let gateway: TestGateway
let origins: RawOrigin[]
let clients: Socket[]

beforeEach(async () => {
  gateway = await startGateway({ headersMs: 600 })
  origins = []
  clients = []
})
afterEach(async () => {
  for (const client of clients) client.destroy()
  await Promise.all(origins.map((origin) => origin.close()))
  await gateway.close()
})

async function originOf(onConnection: (socket: Socket) => void): Promise<RawOrigin> {
  const origin = await startRawOrigin(onConnection)
  origins.push(origin)
  return origin
}

/** Opens a TLS connection and waits for the client’s side of the handshake. */
async function greet(servername: string | undefined, options: { alpn?: string[]; over?: Socket } = {}) {
  const to = options.over ? { socket: options.over } : { port: gateway.tlsPort, host: '127.0.0.1' }
  const name = servername === undefined ? {} : { servername }
  const alpn = options.alpn ? { ALPNProtocols: options.alpn } : {}
  const client = connectTls({ ...to, ...name, ...alpn, rejectUnauthorized: false })
  clients.push(client)
  client.on('error', () => {})
  await once(client, 'secureConnect')
  return client
}

function plain(): Socket {
  const client = connectTcp(gateway.tlsPort, '127.0.0.1')
  clients.push(client)
  client.on('error', () => {})
  return client
}

async function asPostgres(servername: string): Promise<TLSSocket> {
  const client = plain()
  client.write(SSL_REQUEST)
  const [answer] = (await once(client, 'data')) as [Buffer]
  expect(answer.toString()).toBe('S')
  return await greet(servername, { over: client })
}

/** Returns everything the peer sends until it closes. */
async function rest(client: Socket): Promise<string> {
  const chunks: Buffer[] = []
  client.on('data', (chunk: Buffer) => chunks.push(chunk))
  if (!client.closed) await once(client, 'close')
  return Buffer.concat(chunks).toString('latin1')
}

async function next(client: Socket): Promise<string> {
  const [chunk] = (await once(client, 'data')) as [Buffer]
  return chunk.toString('latin1')
}

const echo = (socket: Socket) => socket.on('data', (chunk) => socket.write(chunk))
const redis = (more: Partial<Route> & { secret?: string } = {}) => ({ protocol: 'redis' as const, ...more })

describe('a connection to a TCP endpoint', () => {
  it('forwards bytes in both directions and ends with either side', async () => {
    const origin = await originOf(echo)
    const client = await greet(gateway.expose(origin.port, redis()))
    client.write(PING)
    expect(await next(client)).toBe(PING)
    client.write('more')
    expect(await next(client)).toBe('more')
    origin.connections[0]?.destroy()
    await once(client, 'close')
    await expect.poll(() => gateway.gateway.count().visits).toBe(0)
  })

  it('wakes its unit at the client’s first message, not before', async () => {
    const origin = await originOf(echo)
    const host = gateway.expose(origin.port, redis({ state: 'sleeping', stoppedReason: 'idle' }))
    gateway.onWake = async (route) => ({ kind: 'running', route: { ...route, state: 'running' } })
    const client = await greet(host)
    await delay(50)
    expect(gateway.wakes).toHaveLength(0)
    client.write(PING)
    expect(await next(client)).toBe(PING)
    expect(gateway.wakes).toHaveLength(1)
  })

  it.each([
    ['another protocol', 'GET / HTTP/1.1\r\nhost: a\r\n\r\n'],
    ['garbage', '\u0001\u0002\u0003'],
  ])('does not wake the unit for %s', async (_what, bytes) => {
    const host = gateway.expose(1, redis({ state: 'sleeping', stoppedReason: 'idle' }))
    const client = await greet(host)
    client.write(bytes)
    await rest(client)
    expect(gateway.wakes).toHaveLength(0)
    expect(gateway.use).toEqual([])
  })

  it('explains in its own protocol why the unit is not available', async () => {
    const host = gateway.expose(1, redis({ state: 'stopped', stoppedReason: 'user' }))
    const client = await greet(host)
    client.write(PING)
    expect(await rest(client)).toMatch(/^-ERR This unit is stopped/)
  })

  it('needs the secret in its name if the endpoint is private', async () => {
    const origin = await originOf(echo)
    const secret = 'a'.repeat(26)
    const host = gateway.expose(origin.port, redis({ secret }))
    for (const wrong of [host.replace(secret, 'b'.repeat(26)), host.replace(`-${secret}`, '')]) {
      const stranger = await greet(wrong)
      stranger.write(PING)
      expect(await rest(stranger)).toMatch(/^-ERR There is nothing at this address/)
    }
    expect(origin.connections).toHaveLength(0)
    const client = await greet(host)
    client.write(PING)
    expect(await next(client)).toBe(PING)
  })

  it('is closed within a second when its endpoint is deleted or its run has ended', async () => {
    const origin = await originOf(echo)
    const host = gateway.expose(origin.port, redis())
    const [name = ''] = gateway.routes.keys()
    for (const change of [retire, moveOn]) {
      const before = gateway.routes.get(name)
      const client = await greet(host)
      client.write(PING)
      await next(client)
      change(name)
      const closed = once(client, 'close')
      await gateway.later(500)
      await closed
      if (before) gateway.routes.set(name, before)
    }
  })

  const retire = (name: string) => {
    gateway.routes.delete(name)
  }
  const moveOn = (name: string) => {
    const route = gateway.routes.get(name)
    if (route) gateway.routes.set(name, { ...route, generation: route.generation + 1 })
  }

  it('survives the freeze of its unit, and the next byte wakes the unit', async () => {
    const origin = await originOf(echo)
    const host = gateway.expose(origin.port, redis())
    const [name = ''] = gateway.routes.keys()
    const client = await greet(host)
    client.write(PING)
    await next(client)
    await gateway.later(500)
    const route = gateway.routes.get(name)
    if (!route) throw new Error('there is no route')
    gateway.routes.set(name, { ...route, state: 'sleeping', stoppedReason: 'idle', frozen: true })
    await gateway.later(500)
    expect([client.closed, gateway.wakes]).toEqual([false, []])
    gateway.isAwake = () => false
    client.write('more')
    expect(await next(client)).toBe('more')
    expect(gateway.wakes).toHaveLength(1)
  })

  it('marks its unit in use until the unit responds, like an HTTP request', async () => {
    const origin = await originOf((socket) => socket.once('data', (chunk) => socket.write(chunk)))
    const client = await greet(gateway.expose(origin.port, redis({ unitId: 'u' })))
    client.write(PING)
    await next(client)
    expect(gateway.use.slice(-1)).toEqual(['end u'])
    gateway.use.length = 0
    client.write(PING)
    await expect.poll(() => gateway.use).toEqual(['begin u'])
    client.write(PING)
    origin.connections[0]?.write('+PONG')
    await next(client)
    expect(gateway.use).toEqual(['begin u', 'end u'])
    client.write(PING)
    await expect.poll(() => gateway.use).toHaveLength(3)
    client.destroy()
    await expect.poll(() => gateway.use).toEqual(['begin u', 'end u', 'begin u', 'end u'])
  })

  it('does not wake the unit because of bytes from before the freeze', async () => {
    const origin = await originOf((socket) => socket.once('data', (chunk) => socket.write(chunk)))
    const host = gateway.expose(origin.port, redis())
    const [name = ''] = gateway.routes.keys()
    const client = await greet(host)
    client.write(PING)
    await next(client)
    const route = gateway.routes.get(name)
    if (route) gateway.routes.set(name, { ...route, state: 'sleeping', stoppedReason: 'idle', frozen: true })
    await gateway.later(500)
    await gateway.later(500)
    expect(gateway.wakes).toEqual([])
    // The gateway does not know yet that the unit is frozen, but notices new bytes.
    gateway.isAwake = () => true
    client.write(PING)
    await expect.poll(() => origin.connections[0]?.bytesRead).toBe(2 * PING.length)
    await gateway.later(500)
    expect(gateway.wakes).toHaveLength(1)
  })

  it('delivers every byte to a client that pauses for hours', async () => {
    const answer = Buffer.alloc(16 * 1024 * 1024, 'x')
    const origin = await originOf((socket) => socket.once('data', () => socket.write(answer)))
    const client = await greet(gateway.expose(origin.port, redis()))
    client.pause()
    client.write(PING)
    const isHeldBack = () => (origin.connections[0]?.writableLength ?? 0) > 0
    await expect.poll(isHeldBack).toBe(true)
    for (let hour = 0; hour < 3; hour += 1) await gateway.later(HOUR)
    let readBytes = 0
    client.on('data', (chunk: Buffer) => {
      readBytes += chunk.length
    })
    client.resume()
    await expect.poll(() => readBytes).toBe(answer.length)
    expect(client.closed).toBe(false)
  })

  it('counts as use while bytes pass or the client waits for a response, and not while it is idle', async () => {
    const origin = await originOf((socket) => {
      socket.on('data', (chunk) => {
        if (!chunk.toString().includes('BLPOP')) socket.write(chunk)
      })
    })
    const client = await greet(gateway.expose(origin.port, redis()))
    client.write(PING)
    await next(client)
    await gateway.later(500)
    gateway.use.length = 0
    await gateway.later(500)
    expect(gateway.use).toEqual([])
    client.write('*2\r\n$5\r\nBLPOP\r\n$1\r\na\r\n')
    await delay(50)
    await gateway.later(500)
    gateway.use.length = 0
    await gateway.later(500)
    expect(gateway.use[0]).toMatch(/^touch /)
  })
})

describe('a PostgreSQL client', () => {
  it('gets N for its GSS request and S for its TLS request, and then a session', async () => {
    const origin = await originOf(echo)
    const host = gateway.expose(origin.port, { protocol: 'postgres' })
    const client = plain()
    client.write(GSS_REQUEST)
    expect(await next(client)).toBe('N')
    client.write(SSL_REQUEST)
    expect(await next(client)).toBe('S')
    const secure = await greet(host, { over: client })
    secure.write(STARTUP)
    expect(await next(secure)).toBe(STARTUP.toString('latin1'))
  })

  it('can use direct TLS with ALPN', async () => {
    const origin = await originOf(echo)
    const client = await greet(gateway.expose(origin.port, { protocol: 'postgres' }), {
      alpn: ['postgresql'],
    })
    expect(client.alpnProtocol).toBe('postgresql')
    client.write(STARTUP)
    expect(await next(client)).toBe(STARTUP.toString('latin1'))
  })

  it('without TLS is told to use it', async () => {
    const client = plain()
    client.write(STARTUP)
    expect(await rest(client)).toMatch(/^E.*C28000\0M.*TLS/s)
  })

  it('that sends data after its TLS request in plain text is disconnected', async () => {
    const client = plain()
    client.write(Buffer.concat([SSL_REQUEST, Buffer.from('Q')]))
    expect(await rest(client)).toBe('')
  })

  it('gets a PostgreSQL error for an unknown name', async () => {
    const client = await asPostgres('nobody-aaaaaaaaaa.berth.localhost')
    expect(await rest(client)).toMatch(/^E.*C08004/s)
  })

  it('waits for a server that is still starting up', async () => {
    let sessions = 0
    const origin = await originOf((socket) => {
      sessions += 1
      const isReady = sessions > 2
      socket.once('data', () => {
        if (isReady) socket.write(Buffer.concat([Buffer.from('R'), READY]))
        else socket.end(fatalError('57P03', 'the database system is starting up'))
      })
    })
    const host = gateway.expose(origin.port, {
      protocol: 'postgres',
      state: 'sleeping',
      stoppedReason: 'idle',
    })
    gateway.onWake = async (route) => ({ kind: 'running', route: { ...route, state: 'running' } })
    const client = await asPostgres(host)
    client.write(STARTUP)
    const answer = next(client)
    for (let round = 0; round < 10; round += 1) {
      await delay(20)
      gateway.clock.advance(300)
    }
    expect(await answer).toMatch(/^R/)
    expect(sessions).toBe(3)
  })

  it('gets error 57P01 when its unit goes away', async () => {
    const origin = await originOf((socket) => socket.on('data', () => socket.write(READY)))
    const host = gateway.expose(origin.port, { protocol: 'postgres' })
    const [name = ''] = gateway.routes.keys()
    const client = await asPostgres(host)
    client.write(STARTUP)
    await next(client)
    gateway.routes.delete(name)
    const last = rest(client)
    await gateway.later(500)
    expect(await last).toMatch(/^E.*C57P01/s)
  })

  it('that receives a notification is not waiting for a response', async () => {
    const notification = Buffer.from('A\0\0\0\x0e\0\0\0\x01ab\0cd\0', 'latin1')
    const origin = await originOf((socket) => socket.on('data', () => socket.write(READY)))
    const client = await asPostgres(gateway.expose(origin.port, { protocol: 'postgres', unitId: 'u' }))
    client.write(STARTUP)
    await next(client)
    gateway.use.length = 0
    origin.connections[0]?.write(notification)
    await next(client)
    expect(gateway.use).toEqual([])
  })

  it('has its cancel request forwarded to its unit without waking a sleeping one', async () => {
    const seen: Buffer[] = []
    const origin = await originOf((socket) => socket.on('data', (chunk) => seen.push(chunk)))
    const host = gateway.expose(origin.port, { protocol: 'postgres' })
    const client = await asPostgres(host)
    client.write(CANCEL)
    await expect.poll(() => Buffer.concat(seen)).toEqual(CANCEL)
    const asleep = gateway.expose(origin.port, {
      protocol: 'postgres',
      state: 'sleeping',
      stoppedReason: 'idle',
    })
    const late = await asPostgres(asleep)
    late.write(CANCEL)
    await rest(late)
    expect(gateway.wakes).toHaveLength(0)
  })
})

describe('a client of a stopped unit', () => {
  const stopped = { state: 'stopped', stoppedReason: 'user' } as const

  it('over AMQP completes the handshake and is told the reason', async () => {
    const client = await greet(gateway.expose(1, { protocol: 'amqp', ...stopped }))
    const method = (id: string) => Buffer.from(`01000000000004${id}ce`, 'hex')
    const heard = async (id: string) => {
      const frame = await next(client)
      expect(Buffer.from(frame.slice(7, 11), 'latin1').toString('hex')).toBe(id)
      return frame
    }
    client.write('AMQP\0\0\x09\x01')
    await heard('000a000a')
    client.write(method('000a000b'))
    await heard('000a001e')
    client.write(Buffer.concat([method('000a001f'), method('000a0028')]))
    expect(await heard('000a0032')).toContain('This unit is stopped')
    client.write(method('000a0033'))
    await rest(client)
    await expect.poll(() => gateway.gateway.count()).toEqual({ connections: 0, visits: 0 })
  })

  it('over AMQP is disconnected if it stays silent', async () => {
    const client = await greet(gateway.expose(1, { protocol: 'amqp', ...stopped }))
    client.write('AMQP\0\0\x09\x01')
    await next(client)
    const over = rest(client)
    await gateway.later(20_000)
    await over
  })

  it('over gRPC gets status UNAVAILABLE with the reason', async () => {
    const host = gateway.expose(1, { protocol: 'grpc', ...stopped })
    const session = connectHttp2(`https://127.0.0.1:${gateway.tlsPort}`, {
      servername: host,
      rejectUnauthorized: false,
    })
    const call = session.request({ ':method': 'POST', ':path': '/etcdserverpb.KV/Range' })
    call.resume().end(Buffer.from('0000000000', 'hex'))
    const [head] = await once(call, 'response')
    expect(head).toMatchObject({ ':status': 200, 'grpc-status': '14' })
    expect(head['grpc-message']).toContain('This unit is stopped')
    session.close()
    await expect.poll(() => gateway.gateway.count()).toEqual({ connections: 0, visits: 0 })
  })
})

describe('the TLS port', () => {
  it('tells a silent client in its own protocol that it took too long', async () => {
    for (const open of [
      () => greet(gateway.expose(1, redis())),
      () => asPostgres(gateway.expose(1, { protocol: 'postgres' })),
    ]) {
      const client = await open()
      await expect.poll(() => gateway.gateway.count().visits).toBe(1)
      const words = rest(client)
      await gateway.later(20_000)
      expect(await words).toMatch(/^(?:-ERR The request took too long|E.*57P05.*took too long)/s)
    }
  })

  it('tells an HTTP client without TLS to use it', async () => {
    const client = plain()
    client.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n')
    expect(await rest(client)).toMatch(/^HTTP\/1.1 400 Bad Request\r\n.*not_tls.*https:/s)
  })

  it('refuses request headers that are too large in HTTP/1.1 and HTTP/2', async () => {
    const host = gateway.expose(1)
    const headers = { cookie: 'c'.repeat(40_000) }
    const session = connectHttp2(`https://127.0.0.1:${gateway.tlsPort}`, {
      servername: host,
      rejectUnauthorized: false,
    })
    const call = session.request({ ':authority': host, ...headers })
    call.resume().end()
    const [head] = await once(call, 'response')
    expect(head).toMatchObject({ ':status': 431 })
    session.destroy()
    const client = await greet(host, { alpn: ['http/1.1'] })
    client.write(`GET / HTTP/1.1\r\nhost: ${host}\r\ncookie: ${headers.cookie}\r\n\r\n`)
    expect(await rest(client)).toMatch(/^HTTP\/1.1 431 .*head_too_large/s)
  })

  it('closes a connection whose handshake is too slow', async () => {
    const silent = plain()
    const dripping = plain()
    dripping.write(SSL_REQUEST.subarray(0, 4))
    const stuck = plain()
    stuck.write(Buffer.from('160301020001', 'hex'))
    await Promise.all([silent, dripping, stuck].map((client) => rest(client)))
  })

  it('closes a connection that stays silent after the handshake', async () => {
    const host = gateway.expose(1, redis())
    const client = await greet(host)
    // The handshake completes for the client before it completes for the gateway.
    await expect.poll(() => gateway.gateway.count().visits).toBe(1)
    const closed = once(client, 'close')
    client.resume()
    await gateway.later(20_000)
    await closed
    expect(gateway.gateway.count().visits).toBe(0)
  })

  it('responds with 404 to a browser at the address of a database and does not wake the unit', async () => {
    const host = gateway.expose(1, redis({ state: 'sleeping', stoppedReason: 'idle' }))
    const client = await greet(host, { alpn: ['http/1.1'] })
    client.write(`GET / HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`)
    expect(await rest(client)).toMatch(/^HTTP\/1.1 404/)
    expect(gateway.wakes).toHaveLength(0)
  })
})
