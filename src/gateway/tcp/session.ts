// A unit's end of a connection to a TCP endpoint, and both ends joined: from there on bytes pass as they are, and no
// more of them is understood than tells whether somebody waits.

import { connect, type Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { Conversation } from './pending-responses.ts'
import { peerAddress, peerOf } from '../peer.ts'
import type { Visit } from '../sessions/open-sessions.ts'
import type { Outcome } from '../sessions/outcomes.ts'
import { join, whenClosed } from './splice.ts'
import { refusalIn, shutdownIn, type Tcp } from './refusals.ts'
import type { Route } from '../routing/route.ts'
import type { Listening, Said } from './classify-bytes.ts'
import { beginUse, type Done, type Visiting, wakeIfAsleep } from '../sessions/connect-to-unit.ts'

/** A visit for as long as it is served, whatever becomes of it. Never rejects. */
export async function during(
  visiting: Visiting,
  { socket, protocol }: { socket: TLSSocket; protocol: Tcp },
  serve: (visit: Visit) => Promise<Outcome | Done>,
): Promise<void> {
  const visit = visiting.visits.begin(peerOf(peerAddress(socket)))
  if (!visit) return say(socket, protocol, { kind: 'too-many' })
  whenClosed(socket, () => visit.cut({ kind: 'gone' }))
  try {
    const outcome = await serve(visit)
    if (outcome.kind !== 'over') say(socket, protocol, outcome)
  } catch (error) {
    visiting.log.error({ err: error, unitId: visit.route?.unitId }, 'gateway: a connection failed')
  } finally {
    visiting.visits.end(visit)
    socket.destroySoon()
  }
}

/** Null: it refuses, or cannot be reached in time. */
export function connectTo({ address, port }: Route, visit: Visit): Promise<Socket | null> {
  // Node would take no address for its own host's (reliability I27).
  if (address === null) return Promise.resolve(null)
  visit.enter('connecting')
  return new Promise((resolve) => {
    const unit = connect({ host: address, port, noDelay: true })
    const fail = () => {
      unit.destroy()
      resolve(null)
    }
    unit.once('error', fail)
    visit.whenCut(fail)
    unit.once('connect', () => {
      unit.off('error', fail)
      unit.on('error', () => unit.destroy())
      visit.whenCut(() => unit.destroy())
      resolve(unit)
    })
  })
}

export type Session = {
  socket: TLSSocket
  unit: Socket
  /** What the unit has said, and its visitor is still to be told. */
  first: Buffer
  /** What its visitor says, as the unit is to hear it. */
  translate?: (chunk: Buffer) => Buffer
  protocol: Tcp
  run: Route
  conversation: Conversation
  listening: Listening
}

/** Until both ends are closed. */
export function spend(
  visiting: Visiting,
  visit: Visit,
  { socket, unit, first, translate, protocol, run, conversation, listening }: Session,
): Promise<void> {
  return new Promise((resolve) => {
    const owing = createOwing(visiting, run, conversation)
    const onAnswer = (chunk: Buffer, said: Said) => {
      if (said !== 'nothing') conversation.unitSaid(chunk)
      owing.weigh()
    }
    visit.onSaid = (_chunk, said) => {
      if (said === 'question') conversation.visitorSaid()
      owing.weigh()
      if (said !== 'nothing') wakeIfAsleep(visiting, run)
    }
    const over = () => {
      owing.end()
      resolve()
    }
    owing.weigh()
    const ends = { visitor: socket, unit, first, listening, onAnswer, ...(translate && { translate }) }
    const close = join(visit, ends, over)
    visit.whenCut((why) => {
      const last = why.kind === 'moved' && conversation.isAtRest() ? shutdownIn(protocol) : null
      if (last !== null) socket.write(last)
      if (last !== null) unit.destroy()
      else close()
    })
    visit.isWaiting = () => owing.weigh()
  })
}

/** As long as a unit owes its visitor an answer it is in use, as with a request of HTTP. */
function createOwing(visiting: Visiting, run: Route, conversation: Conversation) {
  let end: (() => void) | null = null
  const stop = () => {
    end?.()
    end = null
  }
  return {
    weigh(): boolean {
      const isWaiting = conversation.isWaiting()
      if (isWaiting) end ??= beginUse(visiting, run)
      else stop()
      return isWaiting
    },
    end: stop,
  }
}

/** Why nothing came of it, where the protocol has a word for that. */
function say(socket: TLSSocket, protocol: Tcp, outcome: Outcome): void {
  const refusal = refusalIn(protocol, outcome)
  if (refusal !== null && socket.writable) socket.write(refusal)
  socket.destroySoon()
}
