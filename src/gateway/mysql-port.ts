// The port for MySQL, where the server speaks first: it has to greet before it can know which unit is meant, since only
// TLS tells that, and a client begins TLS after the greeting.

import { randomBytes } from 'node:crypto'
import { createServer, type Server, type Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { Certificates } from './certificates.ts'
import { serverNameOf } from './exchange.ts'
import { errorPacket, greetClient, readAnswer, SALT_BYTES } from './mysql.ts'
import { readPacket } from './mysql-packets.ts'
import { mysqlErrors } from './refusals.ts'
import { createTlsServer } from './tls-server.ts'

/** A login without TLS is read to its end, so that its answer arrives. */
const MOST_ANSWER_BYTES = 4096

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
  onGreeted: (socket: TLSSocket, serverName: string | null) => void
}): Server {
  const tls = createTlsServer({
    certificates,
    handshakeMs: greetingMs / 2,
    onSecure: (socket) => onGreeted(socket, serverNameOf(socket)),
  })
  return createServer({ noDelay: true, keepAlive: true }, (socket) => {
    socket.on('error', () => socket.destroy())
    onConnection(socket)
    const late = setTimeout(() => socket.destroy(), greetingMs / 2)
    socket.once('close', () => clearTimeout(late))
    void greet(socket).then((answer) => {
      clearTimeout(late)
      if (answer === 'tls' && !socket.destroyed) tls.emit('connection', socket)
      else if (answer === 'plain') socket.end(errorPacket(2, mysqlErrors.noTls), () => socket.destroySoon())
      else socket.destroy()
    })
  })
}

async function greet(socket: Socket): Promise<'tls' | 'plain' | 'wrong'> {
  if (socket.destroyed) return 'wrong'
  socket.write(greetClient({ salt: makeSalt(), sessionId: makeSessionId() }))
  const packet = await readPacket(socket, MOST_ANSWER_BYTES)
  return packet === null ? 'wrong' : readAnswer(packet)
}

/** Of bytes that are text, as servers make it: some clients take it for some. */
function makeSalt(): Buffer {
  return randomBytes(SALT_BYTES).map((byte) => 1 + (byte % 126)) as Buffer
}

/** Far from those of any server: what a client kills by it is nobody's session. */
function makeSessionId(): number {
  return (randomBytes(4).readUInt32LE() | 0x8000_0000) >>> 0
}
