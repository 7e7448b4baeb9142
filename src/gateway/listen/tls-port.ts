// The TLS port: HTTP and every protocol whose client speaks first, told apart by the name in the greeting of TLS.
// A connection is nobody's until that is over, which it has to be soon.

import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import type { TLSSocket, Server as TlsServer } from 'node:tls'
import type { Certificates } from '../certificates/current.ts'
import { type Challenges, isChallenge } from '../certificates/acme-challenges.ts'
import { acceptOptions } from './connection-limits.ts'
import { serverNameOf } from '../peer.ts'
import { errorMessageOf } from '../sessions/outcomes.ts'
import { writePage } from '../http/pages.ts'
import { fatalError, GREETING_BYTES, readGreeting } from '../tcp/postgres/messages.ts'
import { createTlsServer } from './tls-server.ts'

/** How a client came to TLS. */
export type ClientHello = {
  /** As it was sent; null: the client names none. */
  serverName: string | null
  /** By PostgreSQL's own way, or by its name in the greeting of TLS: it expects to be answered in PostgreSQL. */
  isPostgres: boolean
}

export type TlsPort = {
  /** Listens where the caller says. */
  server: Server
  close(): Promise<void>
}

const TLS_RECORD = 0x16
const POSTGRES = 'postgresql'
/** What is agreed on where a client offers it, in this order. */
const APPLICATIONS = [POSTGRES, 'h2', 'http/1.1']
const MAX_GREETINGS = 3
/** How HTTP begins. */
const REQUEST = /^[A-Z]{3,7} [/*h]/
/** Of TLS: kind, version and length, and how long what follows may be. */
const RECORD_HEAD_BYTES = 5
const MAX_RECORD_BYTES = 16 * 1024

export function createTlsPort({
  certificates,
  greetingMs,
  onConnection,
  onGreeted,
  onCancel,
}: {
  certificates: Certificates
  /** Until TLS is there. */
  greetingMs: number
  /** Every connection, before a byte of it is read. It may close it. */
  onConnection: (socket: Socket) => void
  onGreeted: (socket: TLSSocket, greeting: ClientHello) => void
  /** In plain, a request to cancel what a session of PostgreSQL does. It has as long as a greeting. */
  onCancel: (socket: Socket) => void
}): TlsPort {
  const makeTls = (hasAsked: boolean): TlsServer =>
    createTlsServer({
      certificates,
      handshakeMs: greetingMs / 2,
      applications: APPLICATIONS,
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

/** Up to where TLS begins; null where it does not. */
async function greet(
  socket: Socket,
  challenges: Challenges | undefined,
): Promise<'direct' | 'asked' | 'challenge' | 'cancel' | null> {
  for (let greetings = 0; greetings < MAX_GREETINGS; greetings += 1) {
    const isLookedAt = challenges?.arePending() ?? false
    const bytes = await peek(socket, isLookedAt)
    if (bytes[0] === TLS_RECORD) {
      // TLS finds what was read of it.
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
        fatalError('28000', 'this server takes connections over TLS alone', 'Use sslmode=require.'),
      )
      return null
    }
    // Whatever came along with the question was sent in plain, by whoever is between.
    if (asks === 'unknown' || bytes.length > GREETING_BYTES) return null
    socket.write(asks === 'tls' ? 'S' : 'N')
    if (asks === 'tls') return 'asked'
  }
  return null
}

/** What has come: at least as much as says what it is. Rejects when the other side has ended. */
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
      if (socket.readableEnded || socket.destroyed) settle(() => reject(new Error('the other side has left')))
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
