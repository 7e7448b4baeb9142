// Database connections that break at each byte and on either side (reliability F26). The process must not end, no
// connection may stay open, and other clients must not be affected.

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type RawOrigin, startGateway, startRawOrigin, type TestGateway } from '../../test/support/gateway.ts'
import { READY, SSL_REQUEST, STARTUP } from '../../test/support/postgres-messages.ts'

const PING = Buffer.from('*1\r\n$4\r\nPING\r\n')

let gateway: TestGateway
let unit: RawOrigin
/** What the unit does once the client has sent its first message. */
let answer: (socket: Socket) => void
let hosts: { redis: string; postgres: string }

beforeAll(async () => {
  gateway = await startGateway({ headersMs: 2000 })
  unit = await startRawOrigin((socket) => socket.on('data', () => answer(socket)))
  hosts = {
    redis: gateway.expose(unit.port, { protocol: 'redis' }),
    postgres: gateway.expose(unit.port, { protocol: 'postgres' }),
  }
})
afterAll(async () => {
  await gateway.close()
  await unit.close()
})
afterEach(async () => {
  await expect.poll(() => gateway.gateway.count()).toEqual({ connections: 0, visits: 0 })
  // A new client is served as before.
  answer = (socket) => socket.write('+PONG\r\n')
  const client = await greet(hosts.redis)
  client.write(PING)
  const [said] = (await once(client, 'data')) as [Buffer]
  expect(said.toString()).toBe('+PONG\r\n')
  client.destroy()
})

/** Of this thread: other files of tests open and close theirs meanwhile in the same process. */
const openSockets = () => process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length

async function greet(servername: string, over?: Socket): Promise<Socket> {
  const to = over ? { socket: over } : { host: '127.0.0.1', port: gateway.tlsPort }
  const client = connectTls({ ...to, servername, rejectUnauthorized: false })
  client.on('error', () => {})
  await once(client, 'secureConnect')
  return client
}

async function plain(bytes: Buffer): Promise<Socket> {
  const client = connect(gateway.tlsPort, '127.0.0.1')
  client.on('error', () => {})
  await once(client, 'connect')
  if (bytes.length > 0) client.write(bytes)
  return client
}

async function asPostgres(): Promise<Socket> {
  const client = await plain(SSL_REQUEST)
  await once(client, 'data')
  return await greet(hosts.postgres, client)
}

const ends: [string, (socket: Socket) => void][] = [
  ['closes its connection', (socket) => socket.end()],
  ['resets its connection', (socket) => socket.destroy()],
  ['sends garbage', (socket) => socket.end(Buffer.from('\0\xff\r\n}{'.repeat(10), 'latin1'))],
]

/** Returns all prefixes of the bytes, from empty to complete. */
const prefixes = (bytes: Buffer) =>
  Array.from({ length: bytes.length + 1 }, (_, length) => bytes.subarray(0, length))

/** Allows a few descriptors, because closing a socket takes a few turns of the event loop. */
const expectNoGrowth = async (before: number) =>
  await expect.poll(openSockets).toBeLessThanOrEqual(before + 3)

describe.each(ends)('a client that %s', (_how, end) => {
  it('at any byte before the TLS handshake leaves no file descriptor open', async () => {
    const before = openSockets()
    for (const start of [SSL_REQUEST, Buffer.from('16030100a5010000a10303', 'hex')])
      for (const bytes of prefixes(start)) {
        const client = await plain(bytes)
        end(client)
        // Read the reply, so that the end of the connection is noticed.
        client.resume()
      }
    await expect.poll(() => gateway.gateway.count().connections).toBe(0)
    await expectNoGrowth(before)
  })

  it('at any byte of its first message leaves no file descriptor open', async () => {
    const before = openSockets()
    answer = () => {}
    for (const bytes of prefixes(PING).slice(0, -1)) {
      const client = await greet(hosts.redis)
      if (bytes.length > 0) client.write(bytes)
      end(client)
      client.resume()
    }
    for (const bytes of prefixes(STARTUP).slice(0, -1)) {
      const client = await asPostgres()
      if (bytes.length > 0) client.write(bytes)
      end(client)
      client.resume()
    }
    await expect.poll(() => gateway.gateway.count().connections).toBe(0)
    await expectNoGrowth(before)
  })

  it('in a session also closes the connection to the unit', async () => {
    answer = (socket) => socket.write(READY)
    const clients = [await greet(hosts.redis), await asPostgres()]
    clients[0]?.write(PING)
    clients[1]?.write(STARTUP)
    for (const client of clients) await once(client, 'data')
    const open = unit.connections.filter((socket) => !socket.destroyed)
    for (const client of clients) {
      end(client)
      client.resume()
    }
    // The unit closes its side in response.
    for (const socket of open) socket.once('end', () => socket.end())
    await expect.poll(() => open.every((socket) => socket.destroyed)).toBe(true)
  })
})

describe.each(ends)('a unit that %s', (_how, end) => {
  it('after the client’s first message ends the client’s connection', async () => {
    const before = openSockets()
    answer = end
    const clients = [await greet(hosts.redis), await asPostgres()]
    clients[0]?.write(PING)
    clients[1]?.write(STARTUP)
    await Promise.all(clients.map((client) => once(client.resume(), 'close')))
    await expectNoGrowth(before)
  })

  it('in the middle of a response ends the client’s connection', async () => {
    answer = (socket) => {
      socket.write(Buffer.concat([READY, Buffer.alloc(200_000)]))
      setTimeout(() => end(socket), 5)
    }
    const clients = [await greet(hosts.redis), await asPostgres()]
    clients[0]?.write(PING)
    clients[1]?.write(STARTUP)
    await Promise.all(clients.map((client) => once(client.resume(), 'close')))
  })
})
