import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { dialName } from './dial.ts'
import { createReads } from './reads.ts'
import { splice } from './splice.ts'

const servers: Server[] = []
const sockets: Socket[] = []
const atOnce = () => null

afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
  for (const server of servers.splice(0)) server.close()
})

describe('a connection that passes unread', () => {
  test('brings every byte in both directions, also beside others and past one whose client takes nothing', async () => {
    const port = await relayTo(await listen((socket) => socket.pipe(socket)))
    const stalled = open(port)
    stalled.pause()
    const endless = setInterval(() => stalled.write(randomBytes(64 * 1024)), 1)
    try {
      // Of sizes around those of the buffers, and of many of them.
      const sizes = [1, 8191, 8192, 8193, 65_535, 65_536, 65_537, 3_000_001]
      const said = sizes.map((size) => randomBytes(size))
      const heard = await Promise.all(said.map((bytes) => echoed(port, bytes)))
      for (const [at, bytes] of said.entries()) expect(heard[at]?.equals(bytes)).toBe(true)
    } finally {
      clearInterval(endless)
    }
  })

  test('reads no more than one large buffer of the host for a client that takes nothing, and all of it later', async () => {
    const given = randomBytes(24 * 1024 * 1024)
    const hosts: Socket[] = []
    const port = await relayTo(await listen((socket) => socket.end(given)), hosts)
    const client = open(port)
    client.pause()
    await once(client, 'connect')
    const host = await untilStill(hosts)
    const unsent =
      host.bytesRead - (peers.get(host)?.bytesWritten ?? 0) + (peers.get(host)?.writableLength ?? 0)
    expect(host.bytesRead).toBeLessThan(given.length)
    expect(unsent).toBeLessThanOrEqual(64 * 1024)
    expect((await all(client)).equals(given)).toBe(true)
  })

  test('passes the end of one direction on, and the other direction goes on', async () => {
    const port = await relayTo(
      await listen((socket) => {
        socket.write('hello')
        socket.once('end', () => socket.end(' and bye')).resume()
      }),
    )
    const client = open(port)
    const heard = all(client)
    client.end('that was all')
    expect((await heard).toString()).toBe('hello and bye')
  })

  test('is closed at the client when the host resets it', async () => {
    const port = await relayTo(await listen((socket) => socket.once('data', () => socket.resetAndDestroy())))
    const client = open(port)
    client.once('end', () => client.destroy()).resume()
    client.write('a')
    await once(client, 'close')
  })
})

/** Of the connection to a host, the one of the client. */
const peers = new WeakMap<Socket, Socket>()

async function relayTo(port: number, hosts: Socket[] = []): Promise<number> {
  return await listen((client) => {
    void relay(client, port, hosts)
  })
}

async function relay(client: Socket, port: number, hosts: Socket[]): Promise<void> {
  const reads = createReads(client, atOnce)
  const host = await dialName(['127.0.0.1'], port, new AbortController().signal, reads)
  if (host === null) return void client.destroy()
  sockets.push(host)
  peers.set(host, client)
  hosts.push(host)
  splice(client, host, { turn: atOnce, reads })
}

async function listen(onSocket: (socket: Socket) => void): Promise<number> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.push(socket)
    socket.on('error', () => {})
    onSocket(socket)
  })
  servers.push(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

function open(port: number): Socket {
  const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true })
  socket.on('error', () => {})
  sockets.push(socket)
  return socket
}

async function echoed(port: number, bytes: Buffer): Promise<Buffer> {
  const socket = open(port)
  const heard = all(socket)
  socket.end(bytes)
  return await heard
}

async function all(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk)).resume()
  await once(socket, 'end')
  return Buffer.concat(chunks)
}

/** The connection to the host, once nothing is read from it any more. */
async function untilStill(hosts: Socket[]): Promise<Socket> {
  let before = -1
  for (;;) {
    const [host] = hosts
    if (host && host.bytesRead > 0 && host.bytesRead === before) return host
    before = host?.bytesRead ?? -1
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
