// Connects to a unit for a TCP endpoint, and joins both ends: from then on bytes pass unchanged, and only enough is
// parsed to know whether the visitor waits.

import { connect, type Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { PendingResponses } from './pending-responses.ts'
import { peerAddress, peerOf } from '../peer.ts'
import type { Session } from '../sessions/open-sessions.ts'
import type { Outcome } from '../sessions/outcomes.ts'
import { splice, whenClosed } from './splice.ts'
import { errorIn, shutdownMessageIn, type Tcp } from './protocol-errors.ts'
import type { Route } from '../route.ts'
import type { Listening, BytesClass } from '../sessions/bytes-class.ts'
import { beginUse, type Closed, type GatewayContext, wakeIfAsleep } from '../sessions/connect-to-unit.ts'

/** Runs a visit as a session. Never rejects. */
export async function withSession(
  context: GatewayContext,
  { socket, protocol }: { socket: TLSSocket; protocol: Tcp },
  serve: (session: Session) => Promise<Outcome | Closed>,
): Promise<void> {
  const session = context.sessions.begin(peerOf(peerAddress(socket)))
  if (!session) return sendError(socket, protocol, { kind: 'too-many' })
  whenClosed(socket, () => session.cut({ kind: 'gone' }))
  try {
    const outcome = await serve(session)
    if (outcome.kind !== 'closed') sendError(socket, protocol, outcome)
  } catch (error) {
    context.log.error({ err: error, unitId: session.route?.unitId }, 'gateway: connection failed')
  } finally {
    context.sessions.end(session)
    socket.destroySoon()
  }
}

/** Returns null if it refuses, or cannot be reached in time. */
export function connectTo({ address, port }: Route, session: Session): Promise<Socket | null> {
  // Node would take an absent address for its own host (reliability I27).
  if (address === null) return Promise.resolve(null)
  session.enter('connecting')
  return new Promise((resolve) => {
    const unit = connect({ host: address, port, noDelay: true })
    const fail = () => {
      unit.destroy()
      resolve(null)
    }
    unit.once('error', fail)
    session.onCut(fail)
    unit.once('connect', () => {
      unit.off('error', fail)
      unit.on('error', () => unit.destroy())
      session.onCut(() => unit.destroy())
      resolve(unit)
    })
  })
}

export type Relay = {
  socket: TLSSocket
  unit: Socket
  /** Bytes that the unit has sent and the visitor has not received yet. */
  first: Buffer
  /** Changes the visitor's bytes for the unit. */
  translate?: (chunk: Buffer) => Buffer
  protocol: Tcp
  run: Route
  pending: PendingResponses
  listening: Listening
}

/** Resolves when both ends are closed. */
export function relay(
  context: GatewayContext,
  session: Session,
  { socket, unit, first, translate, protocol, run, pending, listening }: Relay,
): Promise<void> {
  return new Promise((resolve) => {
    const owing = createOwing(context, run, pending)
    const onAnswer = (chunk: Buffer, said: BytesClass) => {
      if (said !== 'nothing') pending.unitSent(chunk)
      owing.weigh()
    }
    session.onClientBytes = (_chunk, said) => {
      if (said === 'question') pending.clientSent()
      owing.weigh()
      if (said !== 'nothing') wakeIfAsleep(context, run)
    }
    const over = () => {
      owing.end()
      resolve()
    }
    owing.weigh()
    const ends = { visitor: socket, unit, first, listening, onAnswer, ...(translate && { translate }) }
    const close = splice(session, ends, over)
    session.onCut((why) => {
      const last = why.kind === 'moved' && pending.isAtRest() ? shutdownMessageIn(protocol) : null
      if (last !== null) socket.write(last)
      if (last !== null) unit.destroy()
      else close()
    })
    session.isWaiting = () => owing.weigh()
  })
}

/** While a unit owes its visitor an answer it is in use, as during an HTTP request. */
function createOwing(context: GatewayContext, run: Route, pending: PendingResponses) {
  let end: (() => void) | null = null
  const stop = () => {
    end?.()
    end = null
  }
  return {
    weigh(): boolean {
      const isWaiting = pending.isWaiting()
      if (isWaiting) end ??= beginUse(context, run)
      else stop()
      return isWaiting
    },
    end: stop,
  }
}

/** Sends why it failed, if the protocol has a message for that. */
function sendError(socket: TLSSocket, protocol: Tcp, outcome: Outcome): void {
  const refusal = errorIn(protocol, outcome)
  if (refusal !== null && socket.writable) socket.write(refusal)
  socket.destroySoon()
}
