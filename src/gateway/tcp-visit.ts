// A connection to a TCP endpoint. Nobody is woken before its client has said something that its endpoint speaks;
// from then on the gateway passes bytes, and understands no more of them than tells whether somebody waits.

import { connect, type Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { EndpointLabel } from '../contract/endpoint-label.ts'
import { type Answered, createConversation } from './conversation.ts'
import { peerAddress, peerOf } from './exchange.ts'
import { MOST_FIRST_BYTES, readFirstPacket, type SpeaksFirst } from './first-packet.ts'
import type { Visit } from './open-visits.ts'
import type { Outcome } from './outcomes.ts'
import { endsReady, readFirstReply } from './postgres.ts'
import { join } from './proxy-upgrade.ts'
import { refusalIn, shutdownIn } from './refusals.ts'
import type { Route } from './route.ts'
import { beginUse, type Done, reach, startWake, type Unready, type Visiting } from './visiting.ts'

type TcpVisit = {
  socket: TLSSocket
  label: EndpointLabel
  /** What the label leads to, its secret checked. */
  route: Route
}

/** Takes the connection to its unit and back, whatever becomes of it, and never rejects. */
export async function receiveTcp(visiting: Visiting, { socket, label, route }: TcpVisit): Promise<void> {
  const protocol = route.protocol as SpeaksFirst
  const visit = visiting.visits.begin(peerOf(peerAddress(socket)))
  if (!visit) return say(socket, protocol, { kind: 'too-many' })
  socket.once('close', () => visit.cut({ kind: 'gone' }))
  visit.name = label.name
  try {
    const outcome = visiting.visits.enterUnit(visit, route)
      ? await serve(visiting, visit, { socket, label, route, protocol })
      : ({ kind: 'too-many' } as const)
    if (outcome.kind !== 'over') say(socket, protocol, outcome)
  } catch (error) {
    visiting.log.error({ err: error, unitId: route.unitId }, 'gateway: a connection failed')
  } finally {
    visiting.visits.end(visit)
    socket.destroySoon()
  }
}

async function serve(
  visiting: Visiting,
  visit: Visit,
  { socket, label, route, protocol }: TcpVisit & { protocol: SpeaksFirst },
): Promise<Outcome | Done> {
  const first = await readFirst(socket, visit, protocol)
  if (first === null) return { kind: 'malformed' }
  const wanted = { visit, label, isMeant: (found: Route) => found.protocol === protocol }
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
      visit.onCut = () => {}
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
    visit.onCut = () => settle(false)
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
  visit.enter('connecting')
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
  const conversation = createConversation(visiting.clock, answersOf[protocol] ?? 'by-any-byte')
  await new Promise<void>((resolve) => {
    join(visit, { visitor: socket, unit, first: reply }, resolve)
    const close = visit.onCut
    visit.onCut = (why) => {
      const last = why.kind === 'moved' && conversation.isAtRest() ? shutdownIn(protocol) : null
      if (last !== null) socket.write(last)
      if (last !== null) unit.destroy()
      else close(why)
    }
    visit.isWaiting = () => conversation.isWaiting()
    conversation.visitorSaid()
    if (reply.length > 0) conversation.unitSaid(reply)
    socket.on('data', () => {
      conversation.visitorSaid()
      // It may sleep under a connection that was quiet for long.
      if (!visiting.waker.awake(run)) void startWake(visiting, run).catch(() => {})
    })
    unit.on('data', (chunk: Buffer) => conversation.unitSaid(chunk))
  })
  return { kind: 'over' }
}

/** How it shows that a server has answered all it was asked. */
const answersOf: Partial<Record<SpeaksFirst, Answered>> = { postgres: endsReady }

/** Null: it refuses, or cannot be reached in time. */
function connectTo({ address, port }: Route, visit: Visit): Promise<Socket | null> {
  // Node would take no address for its own host's (reliability I27).
  if (address === null) return Promise.resolve(null)
  return new Promise((resolve) => {
    const unit = connect({ host: address, port, noDelay: true })
    const fail = () => {
      unit.destroy()
      resolve(null)
    }
    unit.once('error', fail)
    visit.onCut = fail
    unit.once('connect', () => {
      unit.off('error', fail)
      unit.on('error', () => unit.destroy())
      visit.onCut = () => unit.destroy()
      resolve(unit)
    })
  })
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

function say(socket: TLSSocket, protocol: SpeaksFirst, outcome: Outcome): void {
  const refusal = refusalIn(protocol, outcome)
  if (refusal !== null && socket.writable) socket.write(refusal)
  socket.destroySoon()
}
