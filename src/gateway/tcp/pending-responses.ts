// Whether the visitor of a connection waits for its unit. A query that runs for an hour moves no byte meanwhile, and
// is use all the same; a connection of a pool that waits to be needed is none (design 4).

import { type Clock, HOUR } from '../../lib/clock.ts'

/**
 * How it shows that the unit has answered all it was asked: by the last bytes of what it said, or, where they do
 * not tell, by its having said anything.
 */
export type Answered = 'by-any-byte' | ((lastBytes: Buffer) => boolean)

/** As long as the longest exec: what waits for longer may wait for something that never comes. */
const LONGEST_WAIT_MS = HOUR
const TAIL_BYTES = 16

export type PendingResponses = {
  clientSent(): void
  unitSent(chunk: Buffer): void
  isWaiting(): boolean
  /** Nothing is under way: what is said now is no part of an answer. */
  isAtRest(): boolean
}

/** `isAside`: what a unit says so, while nobody waits for it, answers nobody. */
export function createPendingResponses(
  clock: Clock,
  answered: Answered,
  isAside: (chunk: Buffer) => boolean = () => false,
): PendingResponses {
  let waitsSinceMs: number | null = null
  let tail: Buffer = Buffer.alloc(0)
  return {
    clientSent() {
      waitsSinceMs ??= clock.monotonicMs()
    },
    unitSent(chunk) {
      if (answered === 'by-any-byte') {
        waitsSinceMs = null
        return
      }
      // The end of an answer may come in two pieces.
      const last = chunk.subarray(-TAIL_BYTES)
      tail = last.length < TAIL_BYTES ? Buffer.concat([tail, last]).subarray(-TAIL_BYTES) : last
      if (answered(tail)) waitsSinceMs = null
      else if (!isAside(chunk)) waitsSinceMs ??= clock.monotonicMs()
    },
    isWaiting: () => waitsSinceMs !== null && clock.monotonicMs() - waitsSinceMs < LONGEST_WAIT_MS,
    isAtRest: () => waitsSinceMs === null,
  }
}
