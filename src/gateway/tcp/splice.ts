// Joins a visitor's connection and a unit's, for WebSockets and databases. Bytes pass unchanged with backpressure in
// both directions, and the end of one ends the other. Either may already have closed.

import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Session } from '../sessions/open-sessions.ts'
import type { Listening, BytesClass } from '../sessions/bytes-class.ts'

export type Ends = {
  visitor: Duplex
  unit: Duplex
  /** Bytes that the unit sent along with its acceptance. */
  first: Buffer
  /** Tells use of the unit from pings, which are not use. */
  listening: Listening
  /** Called with the unit's bytes, once they were passed on. */
  onAnswer?: (chunk: Buffer, said: BytesClass) => void
  /** Changes the visitor's bytes for the unit; without it they pass unchanged. */
  translate?: (chunk: Buffer) => Buffer
}

/**
 * How much may wait to be sent before no more is read: one piece. To stop at each piece and to go on when it is sent costs
 * two system calls, and most pieces are sent at once.
 */
export const UNSENT_BYTES = 64 * 1024

/** Calls back once both are closed. Returns a function that closes them at once. */
export function splice(
  session: Session,
  { visitor, unit, first, listening, onAnswer = () => {}, translate = (chunk) => chunk }: Ends,
  onClosed: () => void,
): () => void {
  const close = () => {
    visitor.destroy()
    unit.destroy()
  }
  let left = 2
  for (const end of [visitor, unit]) {
    end.on('error', close)
    whenClosed(end, () => {
      left -= 1
      if (left === 0) onClosed()
    })
  }
  if (unit instanceof Socket) unit.setTimeout(0)
  let usedBytes = 0
  const hear = (chunk: Buffer, said: BytesClass) => {
    if (said !== 'nothing') usedBytes += chunk.length
    return said
  }
  const answer = (chunk: Buffer) => onAnswer(chunk, hear(chunk, listening.toUnit(chunk)))
  session.staysOpen(() => usedBytes)
  if (first.length > 0) {
    visitor.write(first)
    answer(first)
  }
  visitor.on('data', (chunk: Buffer) => session.onClientBytes(chunk, hear(chunk, listening.toVisitor(chunk))))
  // The other side may have more to send, but only for a limited time.
  const leave = () => session.enter('leftover')
  pass(visitor, unit, translate, () => {
    unit.end()
    leave()
  })
  // A slow visitor still gets everything: at most the buffers of both are held for it.
  pass(
    unit,
    visitor,
    (chunk) => chunk,
    () => visitor.end(leave),
  )
  unit.on('data', answer)
  session.whileAsleep = () => {
    // A visitor that reads nothing is sent no more.
    if (!visitor.writable || visitor.writableLength > 0) return
    const kept = listening.keepAlive()
    if (kept !== null) visitor.write(kept)
  }
  session.onCut(close)
  return close
}

/** Joins two connections until both are closed: bytes and ends pass unchanged, with backpressure. */
export function join(one: Duplex, other: Duplex): Promise<void> {
  const closed = Promise.withResolvers<void>()
  let left = 2
  for (const end of [one, other]) {
    end.on('error', () => end.destroy())
    whenClosed(end, () => {
      left -= 1
      if (left === 0) closed.resolve()
    })
  }
  const same = (chunk: Buffer) => chunk
  pass(one, other, same, () => other.end())
  pass(other, one, same, () => one.end())
  return closed.promise
}

export function whenClosed(end: Duplex, act: () => void): void {
  if (end.closed) act()
  else end.once('close', act)
}

function whenEnded(end: Duplex, act: () => void): void {
  if (end.readableEnded) act()
  else end.once('end', act)
}

function pass(from: Duplex, to: Duplex, translate: (chunk: Buffer) => Buffer, onEnd: () => void): void {
  from.on('data', (chunk: Buffer) => {
    to.write(translate(chunk))
    if (to.writableLength > UNSENT_BYTES) from.pause()
  })
  to.on('drain', () => from.resume())
  whenEnded(from, onEnd)
  // Bytes in transit still reach the other side; then both are closed.
  whenClosed(from, () => {
    if (to.writableFinished || to.destroyed) to.destroy()
    else to.once('finish', () => to.destroy()).end()
  })
}
