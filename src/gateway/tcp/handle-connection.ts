// A connection to a TCP endpoint whose client speaks first. Nobody is woken before it has said something that its
// endpoint speaks.

import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { EndpointLabel } from '../../contract/endpoint-label.ts'
import { type Answered, createConversation } from './pending-responses.ts'
import { MOST_FIRST_BYTES, readFirstPacket, type SpeaksFirst } from './first-message.ts'
import type { Visit } from '../sessions/open-sessions.ts'
import { type Outcome, sayOf } from '../sessions/outcomes.ts'
import { endsReady, isNotice, readFirstReply } from './postgres/messages.ts'
import { noteKey } from './postgres/cancel.ts'
import { refuseAmqp } from './refuse-amqp.ts'
import { refuseGrpc } from './refuse-grpc.ts'
import type { Route } from '../routing/route.ts'
import { listenTo } from './classify-bytes.ts'
import { connectTo, during, spend } from './session.ts'
import { beginUse, type Done, reach, type Unready, type Visiting } from '../sessions/connect-to-unit.ts'

type TcpVisit = {
  socket: TLSSocket
  label: EndpointLabel
  /** What the label leads to, its secret checked. */
  route: Route
}

/** Takes the connection to its unit and back, whatever becomes of it, and never rejects. */
export async function receiveTcp(visiting: Visiting, { socket, label, route }: TcpVisit): Promise<void> {
  const protocol = route.protocol as SpeaksFirst
  await during(visiting, { socket, protocol }, async (visit) => {
    visit.name = label.name
    if (!visiting.visits.enterUnit(visit, route)) return { kind: 'too-many' }
    return await serve(visiting, visit, { socket, label, route, protocol })
  })
}

async function serve(
  visiting: Visiting,
  visit: Visit,
  { socket, label, route, protocol }: TcpVisit & { protocol: SpeaksFirst },
): Promise<Outcome | Done> {
  const first = await readFirst(socket, visit, protocol)
  if (first === 'late') return { kind: 'visitor-too-slow' }
  if (first === null) return { kind: 'malformed' }
  const isMeant = (found: Route) => found.protocol === protocol
  const wanted = { visit, label, isMeant, refusingMs: visiting.limits.refusingSessionMs }
  // What does not run has nothing to cancel.
  if (first.isAll && route.state !== 'running') return { kind: 'over' }
  const outcome = await reach(visiting, wanted, route, (run) =>
    pass(visiting, visit, { socket, first: first.bytes, protocol, run }),
  )
  return outcome.kind === 'over' ? outcome : await explain(visit, socket, first.bytes, { protocol, outcome })
}

/** In a protocol in which nothing can be refused before more has been said than its first packet. */
async function explain(
  visit: Visit,
  socket: TLSSocket,
  first: Buffer,
  { protocol, outcome }: { protocol: SpeaksFirst; outcome: Outcome },
): Promise<Outcome | Done> {
  if (protocol !== 'amqp' && protocol !== 'grpc') return outcome
  visit.enter('leftover')
  visit.whenCut(() => socket.destroy())
  const { title, text } = sayOf(outcome)
  const words = `${title}. ${text}`
  await (protocol === 'amqp' ? refuseAmqp(socket, words) : refuseGrpc(socket, first, words))
  return { kind: 'over' }
}

/** Null: it is none. `late`: it does not come. */
function readFirst(
  socket: TLSSocket,
  visit: Visit,
  protocol: SpeaksFirst,
): Promise<{ bytes: Buffer; isAll: boolean } | 'late' | null> {
  return new Promise((resolve) => {
    let bytes = Buffer.alloc(0)
    const settle = (found: 'whole' | 'only' | 'late' | null) => {
      socket.off('readable', look)
      visit.whenCut(() => {})
      resolve(found === 'late' || found === null ? found : { bytes, isAll: found === 'only' })
    }
    const look = () => {
      for (let chunk = read(socket); chunk !== null; chunk = read(socket)) {
        bytes = Buffer.concat([bytes, chunk])
        const found = readFirstPacket(protocol, bytes)
        if (found === 'more' && bytes.length <= MOST_FIRST_BYTES) continue
        return settle(found === 'whole' || found === 'only' ? found : null)
      }
      if (socket.readableEnded) settle(null)
    }
    visit.whenCut(({ kind }) => settle(kind === 'late' ? kind : null))
    socket.on('readable', look)
    socket.once('end', look)
    look()
  })
}

const read = (socket: Socket) => socket.read() as Buffer | null

type Passed = { socket: TLSSocket; first: Buffer; protocol: SpeaksFirst; run: Route }

async function pass(
  visiting: Visiting,
  visit: Visit,
  { socket, first, protocol, run }: Passed,
): Promise<Done | Unready> {
  const unit = await connectTo(run, visit)
  if (unit === null) return { kind: 'refused-connection' }
  visit.route = run
  visit.endUse = beginUse(visiting, run)
  unit.write(first)
  const reply = protocol === 'postgres' ? await readReply(unit, visit) : Buffer.alloc(0)
  if (reply === 'not-ready') {
    unit.destroy()
    visit.endUse()
    visit.route = null
    return { kind: 'refused-connection' }
  }
  if (protocol === 'postgres') noteKey(visiting.cancelKeys, { unit, first: reply, run })
  const [answered, isAside] = answersOf[protocol] ?? ['by-any-byte' as const]
  const conversation = createConversation(visiting.clock, answered, isAside)
  const listening = listenTo(protocol, visiting.clock)
  listening.toVisitor(first)
  conversation.visitorSaid()
  await spend(visiting, visit, { socket, unit, first: reply, protocol, run, conversation, listening })
  return { kind: 'over' }
}

/** How it shows that a server has answered all it was asked. */
const answersOf: Partial<Record<SpeaksFirst, [Answered, (chunk: Buffer) => boolean]>> = {
  postgres: [endsReady, isNotice],
}

/** What a server says to the start of a session, as far as it tells whether it takes any. */
function readReply(unit: Socket, visit: Visit): Promise<Buffer | 'not-ready'> {
  visit.enter('awaiting')
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
