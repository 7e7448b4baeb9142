// Takes questions over UDP and TCP, within each client's share (resolver.ts).

import type { Socket as UdpSocket } from 'node:dgram'
import type { Server, Socket } from 'node:net'
import { logLimitReached } from '../lib/limit-reached.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { createConcurrencyLimit } from '../lib/concurrency/concurrency-limit.ts'
import { framed } from './upstream.ts'
import type { Transport } from './upstream.ts'

const LIMITS = {
  connections: 256,
  connectionsPerAsker: 8,
  tcpIdleMs: 10_000,
  unreadBytes: 256 * 1024,
} as const

/** Resolves to null for no answer. Never rejects. */
export type Respond = (bytes: Buffer, asker: string, transport: Transport) => Promise<Buffer | null>

export function serveUdp(socket: UdpSocket, respond: Respond, log: Log): void {
  const answer = async (bytes: Buffer, asker: { address: string; port: number }) => {
    const reply = await respond(bytes, asker.address, 'udp')
    if (reply) socket.send(reply, asker.port, asker.address, () => {})
  }
  socket.on('message', (bytes, asker) => {
    // Fails only if the socket was closed in the meantime.
    answer(bytes, asker).catch((error: unknown) => log.debug({ err: error }, 'resolver: answer not sent'))
  })
  socket.on('error', (error) => log.error({ err: error }, 'resolver: receiving failed'))
}

export function serveTcp(
  server: Server,
  respond: Respond,
  { log, clock }: { log: Log; clock: Clock },
): Set<Socket> {
  const open = new Set<Socket>()
  const share = createConcurrencyLimit(LIMITS.connections, LIMITS.connectionsPerAsker)
  server.on('connection', (socket) => {
    const asker = socket.remoteAddress ?? ''
    socket.on('error', () => socket.destroy())
    if (!share.tryAcquire(asker)) {
      const by = share.count(asker) >= LIMITS.connectionsPerAsker ? asker : null
      logLimitReached({ log, clock }, { bound: 'connections to the resolver', by })
      socket.destroy()
      return
    }
    open.add(socket)
    socket.once('close', () => {
      open.delete(socket)
      share.release(asker)
    })
    socket.setTimeout(LIMITS.tcpIdleMs, () => socket.destroy())
    answerInOrder(socket, asker, respond).catch(() => socket.destroy())
  })
  return open
}

/** Handles one query at a time: a client that sends faster waits in its own buffers. */
async function answerInOrder(socket: Socket, asker: string, respond: Respond): Promise<void> {
  let received: Buffer = Buffer.alloc(0)
  for await (const chunk of socket) {
    received = Buffer.concat([received, chunk as Buffer])
    while (received.length >= 2 && received.length >= received.readUInt16BE(0) + 2) {
      const end = received.readUInt16BE(0) + 2
      const reply = await respond(received.subarray(2, end), asker, 'tcp')
      // A client that asks and never reads would fill our memory with answers.
      if (!reply || socket.writableLength > LIMITS.unreadBytes) {
        socket.destroy()
        return
      }
      socket.write(framed(reply))
      received = received.subarray(end)
    }
  }
}
