// A connection to a TCP endpoint whose client speaks first. Nobody is woken before it has said something that its
// endpoint speaks.

import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { EndpointLabel } from '../contract/endpoint-label.ts'
import { type Answered, createConversation } from './conversation.ts'
import { MOST_FIRST_BYTES, readFirstPacket, type SpeaksFirst } from './first-packet.ts'
import type { Visit } from './open-visits.ts'
import type { Outcome } from './outcomes.ts'
import { endsReady, readFirstReply } from './postgres.ts'
import { noteKey } from './postgres-cancel.ts'
import type { Route } from './route.ts'
import { connectTo, during, spend } from './tcp-session.ts'
import { beginUse, type Done, reach, type Unready, type Visiting } from './visiting.ts'

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
  if (first === null) return { kind: 'malformed' }
  const isMeant = (found: Route) => found.protocol === protocol
  const wanted = { visit, label, isMeant, refusingMs: visiting.limits.refusingSessionMs }
  // What does not run has nothing to cancel.
  if (first.isAll && route.state !== 'running') return { kind: 'over' }
  return await reach(visiting, wanted, route, (run) =>
    pass(visiting, visit, { socket, first: first.bytes, protocol, run }),
  )
}

/** Null: it is none, or does not come. */
function readFirst(
  socket: TLSSocket,
  visit: Visit,
  protocol: SpeaksFirst,
): Promise<{ bytes: Buffer; isAll: boolean } | null> {
  return new Promise((resolve) => {
    let bytes = Buffer.alloc(0)
    const settle = (isWhole: boolean, isAll = false) => {
      socket.off('readable', look)
      visit.whenCut(() => {})
      resolve(isWhole ? { bytes, isAll } : null)
    }
    const look = () => {
      for (let chunk = read(socket); chunk !== null; chunk = read(socket)) {
        bytes = Buffer.concat([bytes, chunk])
        const found = readFirstPacket(protocol, bytes)
        if (found === 'more' && bytes.length <= MOST_FIRST_BYTES) continue
        return settle(found === 'whole' || found === 'only', found === 'only')
      }
      if (socket.readableEnded) settle(false)
    }
    visit.whenCut(() => settle(false))
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
  const conversation = createConversation(visiting.clock, answersOf[protocol] ?? 'by-any-byte')
  conversation.visitorSaid()
  await spend(visiting, visit, { socket, unit, first: reply, protocol, run, conversation })
  return { kind: 'over' }
}

/** How it shows that a server has answered all it was asked. */
const answersOf: Partial<Record<SpeaksFirst, Answered>> = { postgres: endsReady }

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
