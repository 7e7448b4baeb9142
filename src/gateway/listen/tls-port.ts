// The TLS port: HTTP and every protocol whose client speaks first, told apart by SNI. Until the handshake is done,
// which must be soon, a connection belongs to no endpoint.

import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import type { TLSSocket, Server as TlsServer } from 'node:tls'
import type { Certificates } from '../certificates/current.ts'
import { type Challenges, isChallenge } from '../certificates/acme-challenges.ts'
import type { TicketKeys } from '../workers/ticket-keys.ts'
import { acceptOptions } from './connection-limits.ts'
import { applications } from '../handover/protocol.ts'
import { serverNameOf } from '../peer.ts'
import { errorMessageOf } from '../sessions/outcomes.ts'
import { writePage } from '../http/pages.ts'
import { fatalError, GREETING_BYTES, readGreeting } from '../tcp/postgres/messages.ts'
import { createTlsServer } from './tls-server.ts'

/** How a client started TLS. */
export type ClientHello = {
  /** As sent; null if the client sends no name. */
  serverName: string | null
  /**
   * The client started with PostgreSQL's SSLRequest, or offered its ALPN name: it expects answers in PostgreSQL's
   * protocol.
   */
  isPostgres: boolean
}

export type TlsPort = {
  /** The caller chooses where it listens. */
  server: Server
  close(): Promise<void>
}

const TLS_RECORD = 0x16
const POSTGRES = 'postgresql'
const MAX_GREETINGS = 3
/** The beginning of an HTTP request. */
const REQUEST = /^[A-Z]{3,7} [/*h]/
/** A TLS record's type, version and length; and the limit of that length. */
const RECORD_HEAD_BYTES = 5
const MAX_RECORD_BYTES = 16 * 1024

export function createTlsPort({
  certificates,
  tickets,
  greetingMs,
  onConnection,
  onGreeted,
  onCancel,
}: {
  certificates: Certificates
  tickets?: TicketKeys
  /** The timeout until TLS is established. */
  greetingMs: number
  /** Called for every connection, before a byte of it is read. May close it. */
  onConnection: (socket: Socket) => void
  onGreeted: (socket: TLSSocket, greeting: ClientHello) => void
  /** Called for a PostgreSQL cancel request without TLS. It has the same timeout. */
  onCancel: (socket: Socket) => void
}): TlsPort {
  const makeTls = (hasAsked: boolean): TlsServer =>
    createTlsServer({
      certificates,
      ...(tickets && { tickets: { keys: tickets, listener: hasAsked ? 'postgres' : 'tls' } }),
      handshakeMs: greetingMs / 2,
      applications,
      onSecure: (socket) =>
        onGreeted(socket, {
          serverName: serverNameOf(socket),
          isPostgres: hasAsked || socket.alpnProtocol === POSTGRES,
        }),
    })
  const { challenges } = certificates
  const takers = { direct: makeTls(false), asked: makeTls(true), challenge: challenges?.server }

  const server = createServer(acceptOptions, (socket) => {
    socket.on('error', () => socket.destroy())
    onConnection(socket)
    const late = setTimeout(() => socket.destroy(), greetingMs / 2)
    socket.once('close', () => clearTimeout(late))
    greet(socket, challenges).then(
      (kind) => {
        if (kind === 'cancel') return onCancel(socket)
        clearTimeout(late)
        if (kind === null) socket.destroySoon()
        else if (!socket.destroyed) takers[kind]?.emit('connection', socket)
      },
      () => socket.destroy(),
    )
  })

  return {
    server,
    async close() {
      if (!server.listening) return
      server.close()
      await once(server, 'close')
    },
  }
}

/** Reads up to where TLS begins; returns null if it does not. */
async function greet(
  socket: Socket,
  challenges: Pick<Challenges, 'arePending'> | undefined,
): Promise<'direct' | 'asked' | 'challenge' | 'cancel' | null> {
  for (let greetings = 0; greetings < MAX_GREETINGS; greetings += 1) {
    const isLookedAt = challenges?.arePending() ?? false
    const bytes = await peek(socket, isLookedAt)
    if (bytes[0] === TLS_RECORD) {
      // Puts the bytes back for TLS to read.
      socket.unshift(bytes)
      return isLookedAt && isChallenge(bytes) ? 'challenge' : 'direct'
    }
    const asks = readGreeting(bytes)
    if (asks === 'cancel') {
      socket.unshift(bytes)
      return 'cancel'
    }
    if (REQUEST.test(bytes.toString('latin1'))) {
      socket.write(writePage(errorMessageOf({ kind: 'plain' }), { acceptsHtml: false }))
      return null
    }
    if (asks === 'session') {
      socket.write(
        fatalError('28000', 'this server only accepts connections with TLS', 'Use sslmode=require.'),
      )
      return null
    }
    // Bytes sent along with the request were not encrypted, so an attacker in between may have added them.
    if (asks === 'unknown' || bytes.length > GREETING_BYTES) return null
    socket.write(asks === 'tls' ? 'S' : 'N')
    if (asks === 'tls') return 'asked'
  }
  return null
}

/** Returns the received bytes: at least enough to recognize the protocol. Rejects if the client has disconnected. */
function peek(socket: Socket, wantsRecord: boolean): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let bytes = Buffer.alloc(0)
    const settle = (settled: () => void) => {
      socket.off('readable', look)
      socket.off('close', look)
      settled()
    }
    const look = () => {
      for (let chunk = read(socket); chunk !== null; chunk = read(socket)) {
        bytes = Buffer.concat([bytes, chunk])
        if (isEnough(bytes, wantsRecord)) return settle(() => resolve(bytes))
      }
      if (socket.readableEnded || socket.destroyed) settle(() => reject(new Error('the client disconnected')))
    }
    socket.on('readable', look)
    socket.on('close', look)
    look()
  })
}

const read = (socket: Socket) => socket.read() as Buffer | null

function isEnough(bytes: Buffer, wantsRecord: boolean): boolean {
  if (bytes[0] !== TLS_RECORD) return bytes.length >= GREETING_BYTES
  if (!wantsRecord) return true
  if (bytes.length < RECORD_HEAD_BYTES) return false
  return bytes.length >= RECORD_HEAD_BYTES + Math.min(bytes.readUInt16BE(3), MAX_RECORD_BYTES)
}
