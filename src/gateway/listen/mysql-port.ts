// The port for MySQL, where the server speaks first: the gateway must send a greeting before it knows which unit is
// meant, because the client starts TLS, which has the server name, only after the greeting.

import { randomBytes } from 'node:crypto'
import { createServer, type Server, type Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { Certificates } from '../certificates/current.ts'
import { MAX_GATEWAY_WORKERS } from '../../lib/gateway-workers.ts'
import type { TicketKeys } from '../workers/ticket-keys.ts'
import { acceptOptions } from './connection-limits.ts'
import { serverNameOf } from '../peer.ts'
import type { Greeted } from '../tcp/mysql/handle-connection.ts'
import { errorPacket, greetClient, readAnswer, SALT_BYTES } from '../tcp/mysql/messages.ts'
import { readPacket } from '../tcp/mysql/packets.ts'
import { mysqlErrors } from '../tcp/protocol-errors.ts'
import { createTlsServer } from './tls-server.ts'

/** A login without TLS is read to its end, so that the client gets the error. */
const MAX_ANSWER_BYTES = 4096

export function createMysqlPort({
  certificates,
  tickets,
  worker,
  greetingMs,
  onConnection,
  onGreeted,
}: {
  certificates: Certificates
  tickets?: TicketKeys
  /** The number of this gateway among several on one host: they give different ids. */
  worker?: number
  /** The timeout until TLS is established. */
  greetingMs: number
  /** Called for every connection, before a byte of it is read. May close it. */
  onConnection: (socket: Socket) => void
  /** `sessionId`: the id in the greeting, unique among connections. */
  onGreeted: (socket: TLSSocket, greeted: Greeted) => void
}): Server {
  const sessionIds = createSessionIds(worker)
  const tls = createTlsServer({
    certificates,
    ...(tickets && { tickets: { keys: tickets, listener: 'mysql' } }),
    handshakeMs: greetingMs / 2,
    onSecure(socket) {
      const sessionId = sessionIds.of(socket)
      // Null: the client has disconnected.
      if (sessionId !== null) onGreeted(socket, { serverName: serverNameOf(socket), sessionId })
      else socket.destroy()
    },
  })
  return createServer(acceptOptions, (socket) => {
    socket.on('error', () => socket.destroy())
    onConnection(socket)
    const late = setTimeout(() => socket.destroy(), greetingMs / 2)
    socket.once('close', () => clearTimeout(late))
    void greet(socket, sessionIds).then((answer) => {
      clearTimeout(late)
      if (answer === 'tls' && !socket.destroyed) tls.emit('connection', socket)
      else if (answer === 'plain') socket.end(errorPacket(2, mysqlErrors.noTls), () => socket.destroySoon())
      else socket.destroy()
    })
  })
}

async function greet(socket: Socket, sessionIds: SessionIds): Promise<'tls' | 'plain' | 'wrong'> {
  if (socket.destroyed) return 'wrong'
  socket.write(greetClient({ salt: makeSalt(), sessionId: sessionIds.give(socket) }))
  const packet = await readPacket(socket, MAX_ANSWER_BYTES)
  return packet === null ? 'wrong' : readAnswer(packet)
}

/** Bytes that are printable text, as servers use, because some clients treat the salt as text. */
function makeSalt(): Buffer {
  return randomBytes(SALT_BYTES).map((byte) => 1 + (byte % 126)) as Buffer
}

type SessionIds = ReturnType<typeof createSessionIds>

/** The session id of each connection. TLS wraps it in another object, so the key is the pair of ports. */
function createSessionIds(worker: number | undefined) {
  const byPorts = new Map<string, number>()
  const taken = new Set<number>()
  return {
    give(socket: Socket): number {
      const ports = portsOf(socket)
      let id = makeSessionId(worker)
      while (taken.has(id)) id = makeSessionId(worker)
      taken.add(id)
      byPorts.set(ports, id)
      socket.once('close', () => {
        taken.delete(id)
        if (byPorts.get(ports) === id) byPorts.delete(ports)
      })
      return id
    },
    of: (socket: Socket) => byPorts.get(portsOf(socket)) ?? null,
  }
}

function portsOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return [remoteAddress, remotePort, localAddress, localPort].join(' ')
}

/** Of the four bits below the first one. */
const WORKER_BIT = 27

/** Far above those of any server, which count from 1, so the two cannot be confused. */
function makeSessionId(worker: number | undefined): number {
  const id = (randomBytes(4).readUInt32LE() | 0x8000_0000) >>> 0
  if (worker === undefined) return id
  return ((id & ~((MAX_GATEWAY_WORKERS - 1) << WORKER_BIT)) | (worker << WORKER_BIT)) >>> 0
}
