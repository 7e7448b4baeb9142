// The unit's side of a MySQL connection: its server's own greeting, the client's login adapted to it, and the
// password exchange, which uses the server's salt and is unreadable here. After that bytes pass unchanged.
//
// The client believes that the whole path has TLS, and may be asked for its readable password: a server without TLS
// is not allowed to ask for it.

import type { Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import type { Clock } from '../../../lib/clock.ts'
import { type PendingResponses, createPendingResponses } from '../pending-responses.ts'
import { askForTls, asksForPassword, errorPacket, type Login, readGreeting, writeLogin } from './messages.ts'
import { followKills } from './kill.ts'
import { followPackets, HEADER_BYTES, readPacket, readPackets, writePacket } from './packets.ts'
import type { Session } from '../../sessions/open-sessions.ts'
import type { Outcome } from '../../sessions/outcomes.ts'
import { mysqlErrors } from '../protocol-errors.ts'
import type { Route } from '../../route.ts'
import { listenTo } from '../classify-bytes.ts'
import { connectTo, relay } from '../session.ts'
import { beginUse, type Closed, type Unready, type GatewayContext } from '../../sessions/connect-to-unit.ts'

const MAX_GREETING_BYTES = 4096
/** The longest password exchange; a Kerberos ticket is the longest. */
const MAX_EXCHANGED_BYTES = 64 * 1024
/** The errors of a server that is starting or shutting down. */
const notReady = [1053 /* shutting down */, 1047 /* of a cluster it has not joined yet */]

/** `sessionId`: the gateway's id, which the client has. */
type Passed = { socket: TLSSocket; sessionId: number; login: Login; run: Route }

export async function runMysqlSession(
  context: GatewayContext,
  session: Session,
  { socket, sessionId, login, run }: Passed,
): Promise<Outcome | Closed | Unready> {
  const unit = await connectTo(run, session)
  if (unit === null) return { kind: 'refused-connection' }
  session.route = run
  session.endUse = beginUse(context, run)
  session.enter('awaiting')
  const opened = await open(session, { socket, unit, login })
  if (opened.kind === 'open') {
    const { mysqlSessions, clock } = context
    const end = mysqlSessions.add({ given: sessionId, own: opened.sessionId, run })
    const commands = followKills(mysqlSessions, run)
    const pending = createMysqlPendingResponses(clock, commands.answered)
    const ends = { socket, unit: opened.unit, first: Buffer.alloc(0), translate: commands.take }
    const listening = listenTo('mysql', clock)
    await relay(context, session, { ...ends, protocol: 'mysql', run, pending, listening }).finally(end)
    return { kind: 'closed' }
  }
  unit.destroy()
  session.endUse()
  session.route = null
  return opened
}

/** `sessionId`: the server's own id. */
type Opened = { kind: 'open'; unit: Socket; sessionId: number }

/** Opens the connection, up to where the server has accepted the client. */
async function open(
  session: Session,
  { socket, unit, login }: { socket: TLSSocket; unit: Socket; login: Login },
): Promise<Opened | Outcome | Closed | Unready> {
  const packet = await readPacket(unit, MAX_GREETING_BYTES)
  // A server that is just starting may accept a connection and close it without a greeting.
  if (packet === null) return { kind: 'refused-connection' }
  const greeting = readGreeting(packet)
  if (greeting.kind === 'wrong') return { kind: 'bad-gateway' }
  if (greeting.kind === 'refuses') {
    if (notReady.includes(greeting.code)) return { kind: 'refused-connection' }
    socket.write(errorPacket(3, { ...greeting, state: '08004' }))
    return { kind: 'closed' }
  }
  const { capabilities: offered, hasTls: isSecure } = greeting
  if (isSecure) unit.write(askForTls(login, offered))
  const secured = isSecure ? await secure(unit, session) : unit
  if (secured === null) return { kind: 'bad-gateway' }
  const first = writeLogin(login, { offered, isSecure })
  secured.write(writePacket(first))
  const isIn = await authenticate(socket, secured, { offset: LOGIN_NUMBER - first.number, isSecure })
  return isIn ? { kind: 'open', unit: secured, sessionId: greeting.sessionId } : { kind: 'closed' }
}

/** The sequence number of a client's login after its TLS request. */
const LOGIN_NUMBER = 2

/** Returns null if it fails. */
function secure(unit: Socket, session: Session): Promise<TLSSocket | null> {
  return new Promise((resolve) => {
    // Its certificate is its own: the address is known from the unit's row and pinned by the firewall.
    const secured = connectTls({ socket: unit, rejectUnauthorized: false })
    session.onCut(() => secured.destroy())
    secured.on('error', () => secured.destroy())
    secured.once('close', () => resolve(null))
    secured.once('secureConnect', () => resolve(secured))
  })
}

/**
 * Relays both sides' messages until the server accepts or refuses the client. Packets are numbered from the greeting
 * on, with one more on the side that switched to TLS.
 */
function authenticate(
  socket: TLSSocket,
  unit: Socket,
  { offset, isSecure }: { offset: number; isSecure: boolean },
): Promise<boolean> {
  return new Promise((resolve) => {
    const over = new AbortController()
    const settle = (isIn: boolean): 'enough' => {
      over.abort()
      resolve(isIn)
      return 'enough'
    }
    let leftBytes = MAX_EXCHANGED_BYTES
    const options = { mostBytes: MAX_EXCHANGED_BYTES, signal: over.signal }
    const isTooMuch = (payload: Buffer) => {
      leftBytes -= HEADER_BYTES + payload.length
      return leftBytes < 0
    }
    readPackets(unit, options, (packet) => {
      if (packet === null || isTooMuch(packet.payload)) return settle(false)
      const { number, payload } = packet
      if (!isSecure && asksForPassword(payload)) {
        socket.write(errorPacket(number + offset, mysqlErrors.noTlsInUnit))
        return settle(false)
      }
      socket.write(writePacket({ number: number + offset, payload }))
      if (payload[0] === OK) return settle(true)
      return payload[0] === ERROR ? settle(false) : 'more'
    })
    readPackets(socket, options, (packet) => {
      if (packet === null || isTooMuch(packet.payload)) return settle(false)
      unit.write(writePacket({ number: packet.number - offset, payload: packet.payload }))
      return 'more'
    })
  })
}

const OK = 0
const ERROR = 0xff

/** Between two packets of an answer an error is read as such; within one it would be taken for data. */
function createMysqlPendingResponses(clock: Clock, onAnswer: () => void): PendingResponses {
  const pending = createPendingResponses(clock, 'by-any-byte')
  const answers = followPackets()
  return {
    ...pending,
    unitSent(chunk) {
      answers.take(chunk)
      onAnswer()
      pending.unitSent(chunk)
    },
    isAtRest: () => pending.isAtRest() && answers.isBetween(),
  }
}
