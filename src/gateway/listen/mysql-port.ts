// The port for MySQL, where the server speaks first: it has to greet before it can know which unit is meant, since only
// TLS tells that, and a client begins TLS after the greeting.

import { randomBytes } from 'node:crypto'
import { createServer, type Server, type Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { Certificates } from '../certificates/current.ts'
import { acceptOptions } from './connection-limits.ts'
import { serverNameOf } from '../peer.ts'
import { errorPacket, greetClient, readAnswer, SALT_BYTES } from '../tcp/mysql/messages.ts'
import { readPacket } from '../tcp/mysql/packets.ts'
import { mysqlErrors } from '../tcp/protocol-errors.ts'
import { createTlsServer } from './tls-server.ts'

/** A login without TLS is read to its end, so that its answer arrives. */
const MAX_ANSWER_BYTES = 4096

export type Greeted = { serverName: string | null; sessionId: number }

export function createMysqlPort({
  certificates,
  greetingMs,
  onConnection,
  onGreeted,
}: {
  certificates: Certificates
  /** Until TLS is there. */
  greetingMs: number
  /** Every connection, before a byte of it is read. It may close it. */
  onConnection: (socket: Socket) => void
  /** `sessionId`: as the greeting has said, and no other connection's. */
  onGreeted: (socket: TLSSocket, greeted: Greeted) => void
}): Server {
  const sessionIds = createSessionIds()
  const tls = createTlsServer({
    certificates,
    handshakeMs: greetingMs / 2,
    onSecure(socket) {
      const sessionId = sessionIds.of(socket)
      // Null: it has left.
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

/** Of bytes that are text, as servers make it: some clients take it for some. */
function makeSalt(): Buffer {
  return randomBytes(SALT_BYTES).map((byte) => 1 + (byte % 126)) as Buffer
}

type SessionIds = ReturnType<typeof createSessionIds>

/** Each connection's, of which TLS makes another object: both know between which ports it is. */
function createSessionIds() {
  const byPorts = new Map<string, number>()
  const taken = new Set<number>()
  return {
    give(socket: Socket): number {
      const ports = portsOf(socket)
      let id = makeSessionId()
      while (taken.has(id)) id = makeSessionId()
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

/** Far from those of any server, which count from 1: nobody can mistake the one for the other. */
function makeSessionId(): number {
  return (randomBytes(4).readUInt32LE() | 0x8000_0000) >>> 0
}
