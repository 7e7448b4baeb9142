// A visitor's connection and a unit's, joined: WebSockets and databases. Bytes pass as they are, neither side faster
// than the other reads, and the end of one is the end of the other. Either may have left while the other was on its way.

import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Session } from '../sessions/open-sessions.ts'
import type { Listening, BytesClass } from './classify-bytes.ts'

export type Ends = {
  visitor: Duplex
  unit: Duplex
  /** What the unit has sent along with its consent. */
  first: Buffer
  /** Tells what is use of the unit from pings, which are none. */
  listening: Listening
  /** Hears what the unit has said, once it is on its way. */
  onAnswer?: (chunk: Buffer, said: BytesClass) => void
  /** What the visitor says, as the unit is to hear it; otherwise bytes pass as they are. */
  translate?: (chunk: Buffer) => Buffer
}

/** Calls back once both are closed. Answers what closes them at once. */
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
  // The other side may have something left to say, but not for ever.
  const leave = () => session.enter('leftover')
  pass(visitor, unit, translate, () => {
    unit.end()
    leave()
  })
  // A visitor who reads slowly gets all of it first: no more than the buffers of both is kept for him.
  pass(
    unit,
    visitor,
    (chunk) => chunk,
    () => visitor.end(leave),
  )
  unit.on('data', answer)
  session.whileAsleep = () => {
    // Who reads nothing is sent no more.
    if (!visitor.writable || visitor.writableLength > 0) return
    const kept = listening.keepAlive()
    if (kept !== null) visitor.write(kept)
  }
  session.onCut(close)
  return close
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
    if (!to.write(translate(chunk))) from.pause()
  })
  to.on('drain', () => from.resume())
  whenEnded(from, onEnd)
  // What is on its way to the other side still gets there; then both are gone.
  whenClosed(from, () => {
    if (to.writableFinished || to.destroyed) to.destroy()
    else to.once('finish', () => to.destroy()).end()
  })
}
