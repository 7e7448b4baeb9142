// Connections to the hosts of brokered secrets: TLS ends here, each request is decided by itself, and the values of the
// secrets are put into its headers. Answers pass as they are, but for values in them (mask.ts). Nothing of a request or a
// secret is logged.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type SecureContext, TLSSocket } from 'node:tls'
import { type Door, turnsOf } from '../door.ts'
import { refuse, refuseUpgrade } from '../refused.ts'
import { passAnswer } from '../request-headers.ts'
import { work } from '../shares.ts'
import { through } from '../through.ts'
import { isUpgrade, passUpgrade } from '../upgrade.ts'
import type { Authorities } from './authorities.ts'
import { beginRequest } from './requests.ts'
import { prepareSecrets } from './prepared.ts'
import { openSession, type Session } from './session.ts'
import { type Protocol, protocols } from './upstream.ts'
import { openHttp2 } from './http2.ts'

const HANDSHAKE_MS = 10_000
const FIRST_HEAD_MS = 60_000
const HEAD_BYTES = 16 * 1024

export type Broker = {
  /** Serves a connection whose first bytes are yet to be read. `team`: whose authority vouches for the host. */
  serve(machine: Socket, to: { team: number; host: string }): Promise<void>
  /** The rules of a machine have changed. */
  forget(machine: string): void
}

export type BrokerOptions = { authorities: Authorities; trusted: () => Promise<SecureContext> }

export function createBroker(door: Door, { authorities, trusted }: BrokerOptions): Broker {
  const sessions = new WeakMap<Duplex, Session>()
  const server = createServer({
    maxHeaderSize: HEAD_BYTES,
    keepAliveTimeout: 0,
    requestTimeout: 0,
    shouldUpgradeCallback: isUpgrade,
  })
  serveRequests(door, server, sessions)
  const prepared = prepareSecrets(() => door.link)

  return {
    forget: prepared.forget,

    async serve(machine, { team, host }) {
      const address = machine.remoteAddress ?? ''
      const to = { machine: address, host, secrets: () => prepared.of(address, host), trusted }
      await door.turn(address, work.connection, machine)
      const secureContext = await authorities.contextFor(team, host)
      if (machine.destroyed) return
      /** What begins once the machine's handshake is over; the one with the host takes place at the same time. */
      let begin: (() => void) | null = null
      const prepare = (protocol: Protocol): (() => void) => {
        if (protocol === 'h2') return openHttp2(door, inside, to)
        sessions.set(inside, openSession(door, inside, to))
        return () => void server.emit('connection', inside)
      }
      const inside: TLSSocket = new TLSSocket(machine, {
        isServer: true,
        secureContext,
        ALPNCallback: ({ protocols }) => {
          const protocol = chooseProtocol(protocols)
          if (protocol !== undefined) begin = prepare(protocol)
          return protocol
        },
      })
      inside.on('error', () => machine.destroy())
      inside.setTimeout(HANDSHAKE_MS, () => machine.destroy())
      inside.once('secure', () => {
        // As a tls.Server does for its own sockets: a session of HTTP/2 waits for it.
        Object.assign(inside, { secureConnecting: false })
        inside.setTimeout(FIRST_HEAD_MS)
        begin ??= prepare('http/1.1')
        begin()
      })
    },
  }
}

/** HTTP/2 only for clients that speak nothing else. Undefined: a fatal alert. */
function chooseProtocol(offered: readonly string[]): Protocol | undefined {
  return protocols.find((protocol) => offered.includes(protocol))
}

function serveRequests(door: Door, server: Server, sessions: WeakMap<Duplex, Session>): void {
  server.on('request', (request, response) => {
    const session = sessions.get(request.socket)
    if (!session) return void request.socket.destroy()
    request.socket.setTimeout(0)
    pass(door, session, request, response).catch(() => request.socket.destroy())
  })
  server.on('upgrade', (request, socket, head) => {
    const session = sessions.get(socket)
    if (!session) return void socket.destroy()
    request.socket.setTimeout(0)
    upgrade(door, session, request, { socket, head }).catch(() => socket.destroy())
  })
  server.on('connect', (_request, socket) => socket.destroy())
  server.on('clientError', (_error, socket) => socket.destroy())
}

async function pass(
  door: Door,
  session: Session,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { socket } = request
  const turn = turnsOf(door, session.machine)
  await door.turn(session.machine, work.request, socket)
  if (socket.destroyed) return
  const begun = beginRequest(door, session, request)
  if ('status' in begun) return refuse(response, begun)
  const { outgoing, mask } = begun
  const done = session.begin()
  response.once('close', () => {
    // What was not answered in full leaves a connection on which the next answer could not be told from it.
    if (!response.writableFinished) outgoing.destroy()
    done()
  })
  outgoing.on('error', (error) => {
    if (response.headersSent) socket.destroy()
    else refuse(response, session.refusalFor(error))
  })
  outgoing.on('response', (answered) => passAnswer(answered, response, { client: socket, turn, mask }))
  through(null, request, turn).pipe(outgoing)
}

async function upgrade(
  door: Door,
  session: Session,
  request: IncomingMessage,
  { socket, head }: { socket: Duplex; head: Buffer },
): Promise<void> {
  socket.on('error', () => socket.destroy())
  await door.turn(session.machine, work.request, socket)
  if (socket.destroyed) return
  const begun = beginRequest(door, session, request)
  if ('status' in begun) return refuseUpgrade(socket, begun)
  const { outgoing, mask } = begun
  const turn = turnsOf(door, session.machine)
  session.begin()
  socket.once('close', () => outgoing.destroy())
  passUpgrade(outgoing, { socket, head, turn, mask, refusalFor: (error) => session.refusalFor(error) })
}
