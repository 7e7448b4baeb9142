// A visitor's connection and a unit's, joined: WebSockets and databases. Bytes pass as they are, neither side faster
// than the other reads, and the end of one is the end of the other. Either may have left while the other was on its way.

import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Visit } from './open-visits.ts'

export type Ends = {
  visitor: Duplex
  unit: Duplex
  /** What the unit has sent along with its consent. */
  first: Buffer
}

/** Calls back once both are closed. Answers what closes them at once. */
export function join(visit: Visit, { visitor, unit, first }: Ends, onClosed: () => void): () => void {
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
  visit.staysOpen(() => bytesOf(unit))
  if (first.length > 0) visitor.write(first)
  visitor.on('data', () => visit.onSaid())
  pass(visit, visitor, unit)
  pass(visit, unit, visitor)
  visit.whenCut(close)
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

function pass(visit: Visit, from: Duplex, to: Duplex): void {
  from.on('data', (chunk: Buffer) => {
    if (to.write(chunk)) return
    from.pause()
    visit.enter('stalled')
  })
  to.on('drain', () => {
    if (visit.phase === 'stalled') visit.enter('open')
    from.resume()
  })
  whenEnded(from, () => {
    to.end()
    // The other side may have something left to say, but not for ever.
    visit.enter('leftover')
  })
  // What is on its way to the other side still gets there; then both are gone.
  whenClosed(from, () => {
    if (to.writableFinished || to.destroyed) to.destroy()
    else to.once('finish', () => to.destroy()).end()
  })
}

function bytesOf(end: Duplex): number {
  return end instanceof Socket ? end.bytesRead + end.bytesWritten : 0
}
