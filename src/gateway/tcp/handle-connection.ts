// A connection to a TCP endpoint whose client speaks first. No unit is woken before the client has sent something in
// the endpoint's protocol.

import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { EndpointLabel } from '../../contract/endpoint-label.ts'
import { type Answered, createPendingResponses } from './pending-responses.ts'
import { MAX_FIRST_BYTES, readFirstMessage, type ClientFirstProtocol } from './first-message.ts'
import type { Session } from '../sessions/open-sessions.ts'
import { type Outcome, errorMessageOf } from '../sessions/outcomes.ts'
import { endsReady, isNotice, readFirstReply } from './postgres/messages.ts'
import { recordCancelKey } from './postgres/cancel.ts'
import { refuseAmqp } from './refuse-amqp.ts'
import { refuseGrpc } from './refuse-grpc.ts'
import type { Route } from '../route.ts'
import { listenTo } from './classify-bytes.ts'
import { connectTo, withSession, relay } from './session.ts'
import {
  beginUse,
  type Closed,
  connectWithRetry,
  type Unready,
  type GatewayContext,
} from '../sessions/connect-to-unit.ts'

type TcpVisit = {
  socket: TLSSocket
  label: EndpointLabel
  /** The label's route, with its secret checked. */
  route: Route
}

/** Relays the connection between the client and its unit. Never rejects. */
export async function handleTcpConnection(
  context: GatewayContext,
  { socket, label, route }: TcpVisit,
): Promise<void> {
  const protocol = route.protocol as ClientFirstProtocol
  await withSession(context, { socket, protocol }, async (session) => {
    session.name = label.name
    if (!context.sessions.enterUnit(session, route)) return { kind: 'too-many' }
    return await serve(context, session, { socket, label, route, protocol })
  })
}

async function serve(
  context: GatewayContext,
  session: Session,
  { socket, label, route, protocol }: TcpVisit & { protocol: ClientFirstProtocol },
): Promise<Outcome | Closed> {
  const first = await readFirst(socket, session, protocol)
  if (first === 'late') return { kind: 'visitor-too-slow' }
  if (first === null) return { kind: 'malformed' }
  const isMeant = (found: Route) => found.protocol === protocol
  const target = { session, label, isMeant, refusingMs: context.limits.refusingSessionMs }
  // A unit that does not run has nothing to cancel.
  if (first.isAll && route.state !== 'running') return { kind: 'closed' }
  const outcome = await connectWithRetry(context, target, route, (run) =>
    pass(context, session, { socket, first: first.bytes, protocol, run }),
  )
  return outcome.kind === 'closed'
    ? outcome
    : await explain(session, socket, first.bytes, { protocol, outcome })
}

/** For a protocol in which nothing can be refused before more than its first packet was exchanged. */
async function explain(
  session: Session,
  socket: TLSSocket,
  first: Buffer,
  { protocol, outcome }: { protocol: ClientFirstProtocol; outcome: Outcome },
): Promise<Outcome | Closed> {
  if (protocol !== 'amqp' && protocol !== 'grpc') return outcome
  session.enter('leftover')
  session.onCut(() => socket.destroy())
  const { title, text } = errorMessageOf(outcome)
  const words = `${title}. ${text}`
  await (protocol === 'amqp' ? refuseAmqp(socket, words) : refuseGrpc(socket, first, words))
  return { kind: 'closed' }
}

/** Null: it is invalid. `late`: it did not arrive in time. */
function readFirst(
  socket: TLSSocket,
  session: Session,
  protocol: ClientFirstProtocol,
): Promise<{ bytes: Buffer; isAll: boolean } | 'late' | null> {
  return new Promise((resolve) => {
    let bytes = Buffer.alloc(0)
    const settle = (found: 'whole' | 'only' | 'late' | null) => {
      socket.off('readable', look)
      session.onCut(() => {})
      resolve(found === 'late' || found === null ? found : { bytes, isAll: found === 'only' })
    }
    const look = () => {
      for (let chunk = read(socket); chunk !== null; chunk = read(socket)) {
        bytes = Buffer.concat([bytes, chunk])
        const found = readFirstMessage(protocol, bytes)
        if (found === 'more' && bytes.length <= MAX_FIRST_BYTES) continue
        return settle(found === 'whole' || found === 'only' ? found : null)
      }
      if (socket.readableEnded) settle(null)
    }
    session.onCut(({ kind }) => settle(kind === 'late' ? kind : null))
    socket.on('readable', look)
    socket.once('end', look)
    look()
  })
}

const read = (socket: Socket) => socket.read() as Buffer | null

type Passed = { socket: TLSSocket; first: Buffer; protocol: ClientFirstProtocol; run: Route }

async function pass(
  context: GatewayContext,
  session: Session,
  { socket, first, protocol, run }: Passed,
): Promise<Closed | Unready> {
  const unit = await connectTo(run, session)
  if (unit === null) return { kind: 'refused-connection' }
  session.route = run
  session.endUse = beginUse(context, run)
  unit.write(first)
  const reply = protocol === 'postgres' ? await readReply(unit, session) : Buffer.alloc(0)
  if (reply === 'not-ready') {
    unit.destroy()
    session.endUse()
    session.route = null
    return { kind: 'refused-connection' }
  }
  if (protocol === 'postgres') recordCancelKey(context.cancelKeys, { unit, first: reply, run })
  const [answered, isAside] = answersOf[protocol] ?? ['by-any-byte' as const]
  const pending = createPendingResponses(context.clock, answered, isAside)
  const listening = listenTo(protocol, context.clock)
  listening.toVisitor(first)
  pending.clientSent()
  await relay(context, session, { socket, unit, first: reply, protocol, run, pending, listening })
  return { kind: 'closed' }
}

/** How each protocol shows that a server has answered everything. */
const answersOf: Partial<Record<ClientFirstProtocol, [Answered, (chunk: Buffer) => boolean]>> = {
  postgres: [endsReady, isNotice],
}

/** Returns the server's reply to the start of a session, up to where it shows whether the server accepts sessions. */
function readReply(unit: Socket, session: Session): Promise<Buffer | 'not-ready'> {
  session.enter('awaiting')
  return new Promise((resolve) => {
    let bytes = Buffer.alloc(0)
    const settle = (reply: Buffer | 'not-ready') => {
      unit.off('readable', look)
      resolve(reply)
    }
    const look = () => {
      for (let chunk = read(unit); chunk !== null; chunk = read(unit)) {
        bytes = Buffer.concat([bytes, chunk])
        const found = readFirstReply(bytes)
        if (found !== 'more') return settle(found === 'ready' ? bytes : 'not-ready')
      }
    }
    unit.on('readable', look)
    unit.once('close', () => settle(bytes))
    look()
  })
}
