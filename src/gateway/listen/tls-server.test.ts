// How soon a client can send data after its TLS handshake.

import { once } from 'node:events'
import { type AddressInfo, connect as connectTcp, createServer, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import koffi from 'koffi'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { certificate } from '../../../test/support/gateway.ts'
import { acceptOptions } from './connection-limits.ts'
import { createTlsServer } from './tls-server.ts'

const getsockopt = koffi
  .load('libc.so.6')
  .func('int getsockopt(int, int, int, _Out_ uint8_t *, _Inout_ unsigned int *)')
const IPPROTO_TCP = 6
const TCP_INFO = 11
const INFO = { bytes: 104, unackedAt: 24 }

/** Returns the number of unacknowledged segments; Nagle’s algorithm delays a small segment behind them. */
function unacknowledged(socket: Socket): number {
  const descriptor: unknown = Reflect.get(Reflect.get(socket, '_handle') as object, 'fd')
  const info = Buffer.alloc(INFO.bytes)
  if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, info, [INFO.bytes]) !== 0) throw new Error('no TCP_INFO')
  return info.readUInt32LE(INFO.unackedAt)
}

let client: Socket
/** Recorded when the server considers the handshake complete. */
let held: { isReused: boolean; unacknowledged: number }[]
const pem = certificate()
const tls = createTlsServer({
  certificates: { find: async () => undefined, follow: (follow) => follow(pem) },
  handshakeMs: 10_000,
  onSecure: (socket) => {
    held.push({ isReused: socket.isSessionReused(), unacknowledged: unacknowledged(client) })
    socket.end('hello')
  },
})
const server = createServer(acceptOptions, (socket) => tls.emit('connection', socket))

beforeEach(async () => {
  held = []
  await once(server.listen(0, '127.0.0.1'), 'listening')
})
afterEach(async () => {
  server.close()
  await once(server, 'close')
})

async function greet(version: 'TLSv1.2' | 'TLSv1.3', session?: Buffer): Promise<Buffer | undefined> {
  client = connectTcp((server.address() as AddressInfo).port, '127.0.0.1')
  client.setNoDelay(false)
  await once(client, 'connect')
  const socket = connectTls({
    socket: client,
    servername: 'web.berth.localhost',
    rejectUnauthorized: false,
    maxVersion: version,
    ...(session && { session }),
  })
  const told: Buffer[] = []
  socket.on('session', (ticket) => told.push(ticket))
  socket.resume()
  await once(socket, 'close')
  return told.at(-1)
}

it.each(['TLSv1.2', 'TLSv1.3'] as const)(
  'the end of a %s handshake is acknowledged at once, also for a resumed session',
  async (version) => {
    const session = await greet(version)
    for (let times = 0; times < 3; times += 1) await greet(version, session)
    const resumed = { isReused: true, unacknowledged: 0 }
    expect(held).toEqual([{ isReused: false, unacknowledged: 0 }, resumed, resumed, resumed])
  },
)
