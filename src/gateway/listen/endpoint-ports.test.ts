// Dedicated ports of endpoints, with clients that send no server name (SNI) and some that do.

import { once } from 'node:events'
import { connect as connectTcp, createServer, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  DOMAIN,
  listen,
  type RawOrigin,
  startGateway,
  startRawOrigin,
  type TestGateway,
} from '../../../test/support/gateway.ts'
import { SSL_REQUEST, STARTUP } from '../../../test/support/postgres-messages.ts'
import type { Protocol } from '../../contract/endpoint.ts'
import { freePort } from '../../lib/free-port.ts'
import type { Route } from '../route.ts'

const PING = '*1\r\n$4\r\nPING\r\n'

let gateway: TestGateway
let origin: RawOrigin
let clients: Socket[]

beforeEach(async () => {
  gateway = await startGateway()
  origin = await startRawOrigin((socket) => socket.on('data', (chunk) => socket.write(chunk)))
  clients = []
})
afterEach(async () => {
  for (const client of clients) client.destroy()
  await origin.close()
  await gateway.close()
})

/** Publishes an endpoint with a dedicated port and waits until the port is open. */
async function publish(protocol: Protocol, more: Partial<Route> & { secret?: string } = {}) {
  const host = gateway.expose(origin.port, { protocol, ...more })
  const [name = ''] = [...gateway.routes.keys()].slice(-1)
  const port = await freePort('127.0.0.1')
  gateway.endpointPorts.push({ port, name, protocol })
  await expect.poll(() => isOpen(port)).toBe(true)
  return { host, name, port }
}

async function isOpen(port: number): Promise<boolean> {
  const socket = connectTcp(port, '127.0.0.1')
  const opened = await Promise.race([
    once(socket, 'connect').then(() => true),
    new Promise<boolean>((resolve) => socket.once('error', () => resolve(false))),
  ]).catch(() => false)
  socket.destroy()
  return opened
}

async function greet(port: number, options: { servername?: string; over?: Socket; alpn?: string[] } = {}) {
  const { servername, over, alpn } = options
  const client = connectTls({
    ...(over ? { socket: over } : { port, host: '127.0.0.1' }),
    ...(servername === undefined ? {} : { servername }),
    ...(alpn ? { ALPNProtocols: alpn } : {}),
    rejectUnauthorized: false,
  })
  clients.push(client)
  client.on('error', () => {})
  await once(client, 'secureConnect')
  return client
}

async function asPostgres(port: number): Promise<TLSSocket> {
  const over = connectTcp(port, '127.0.0.1')
  clients.push(over)
  over.on('error', () => {})
  over.write(SSL_REQUEST)
  await once(over, 'data')
  return await greet(port, { over })
}

async function answerTo(client: Socket, bytes: string | Buffer): Promise<string> {
  const chunks: Buffer[] = []
  client.on('data', (chunk: Buffer) => chunks.push(chunk))
  client.write(bytes)
  await Promise.race([once(client, 'data'), once(client, 'close')])
  return Buffer.concat(chunks).toString('latin1')
}

describe('the dedicated port of an endpoint', () => {
  it('connects a client without SNI to its unit and wakes the unit', async () => {
    const { port } = await publish('redis', { state: 'sleeping', stoppedReason: 'idle' })
    gateway.onWake = async (route) => ({ kind: 'running', route: { ...route, state: 'running' } })
    expect(await answerTo(await greet(port), PING)).toBe(PING)
    expect(gateway.wakes).toHaveLength(1)
  })

  it.each([
    ['mongodb', mongoHello(), undefined],
    ['amqp', Buffer.from('AMQP\0\0\x09\x01'), undefined],
    ['bolt', Buffer.from(`6060b017${'00000004'.repeat(4)}`, 'hex'), undefined],
    ['grpc', Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), ['h2']],
  ] as const)('accepts only %s by its first message', async (protocol, first, alpn) => {
    const { port } = await publish(protocol)
    const options = alpn ? { alpn: [...alpn] } : {}
    expect(await answerTo(await greet(port, options), first)).toBe(first.toString('latin1'))
    const other = await greet(port, options)
    other.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(10))
    if (!other.closed) await once(other, 'close')
    expect(origin.connections).toHaveLength(1)
  })

  it('accepts PostgreSQL clients, which ask for TLS first', async () => {
    const { port } = await publish('postgres')
    expect(await answerTo(await asPostgres(port), STARTUP)).toBe(STARTUP.toString('latin1'))
  })

  it('sends the server greeting first for MySQL', async () => {
    const { port } = await publish('mysql')
    const client = connectTcp(port, '127.0.0.1')
    clients.push(client)
    const [greeting] = (await once(client, 'data')) as [Buffer]
    // The protocol version follows the packet header.
    expect(greeting[4]).toBe(10)
  })

  it('accepts a client with the server name of its endpoint and refuses other names', async () => {
    const { host, port } = await publish('redis')
    const other = gateway.expose(origin.port, { protocol: 'redis' })
    expect(await answerTo(await greet(port, { servername: host }), PING)).toBe(PING)
    for (const servername of [other, `x.${DOMAIN}`, 'example.com']) {
      expect(await answerTo(await greet(port, { servername }), PING), servername).not.toBe(PING)
    }
    expect(origin.connections).toHaveLength(1)
  })

  it('refuses connections if the endpoint is private', async () => {
    const { port } = await publish('redis', { secret: 'a'.repeat(26) })
    expect(await answerTo(await greet(port), PING)).not.toBe(PING)
    expect(origin.connections).toHaveLength(0)
  })

  it('is closed when its endpoint is gone and opened again with a new endpoint', async () => {
    const { port, name } = await publish('redis')
    gateway.endpointPorts.length = 0
    await expect.poll(() => isOpen(port)).toBe(false)
    gateway.endpointPorts.push({ port, name, protocol: 'redis' })
    await expect.poll(() => isOpen(port)).toBe(true)
  })

  it('is retried while another process uses it, without effect on other ports', async () => {
    const squatter = createServer()
    const taken = await listen(squatter)
    gateway.endpointPorts.push({ port: taken, name: 'web-abcdefghij', protocol: 'redis' })
    const { port } = await publish('redis')
    expect(await answerTo(await greet(port), PING)).toBe(PING)
    await new Promise((resolve) => squatter.close(resolve))
    await expect.poll(() => isOpen(taken)).toBe(true)
  })
})

describe('the shared TLS port', () => {
  it('tells a client without SNI what to do, in its own protocol', async () => {
    const postgres = await answerTo(await asPostgres(gateway.tlsPort), STARTUP)
    expect(postgres).toContain('C08004')
    expect(postgres).toContain('portWithoutSni')
    const redis = await answerTo(await greet(gateway.tlsPort), PING)
    expect(redis).toMatch(/^-ERR This connection names no unit.*portWithoutSni.*\r\n$/)
    const browser = await answerTo(await greet(gateway.tlsPort), '*1 / HTTP/1.1\r\n\r\n')
    expect(browser).toMatch(/^HTTP\/1.1 400 /)
  })
})

function mongoHello(): Buffer {
  const bytes = Buffer.alloc(40)
  bytes.writeInt32LE(bytes.length, 0)
  bytes.writeInt32LE(2013, 12)
  return bytes
}
