// Whether the visitor of a connection waits for its unit. A query that runs for an hour moves no byte but is use; an
// idle connection of a pool is not (design 4).

import { type Clock, HOUR } from '../../lib/clock.ts'

/**
 * How the protocol shows that the unit has answered everything: by the last bytes it sent, or by any byte if these do
 * not tell.
 */
export type Answered = 'by-any-byte' | ((lastBytes: Buffer) => boolean)

/** As long as the longest exec: a longer wait is probably for something that never comes. */
const LONGEST_WAIT_MS = HOUR
const TAIL_BYTES = 16

export type PendingResponses = {
  clientSent(): void
  unitSent(chunk: Buffer): void
  isWaiting(): boolean
  /** Whether no answer is in progress, so that bytes now are not part of one. */
  isAtRest(): boolean
}

/** `isAside`: such bytes of a unit, sent while its visitor does not wait, are not an answer. */
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
      // The end of an answer may arrive in two pieces.
      const last = chunk.subarray(-TAIL_BYTES)
      tail = last.length < TAIL_BYTES ? Buffer.concat([tail, last]).subarray(-TAIL_BYTES) : last
      if (answered(tail)) waitsSinceMs = null
      else if (!isAside(chunk)) waitsSinceMs ??= clock.monotonicMs()
    },
    isWaiting: () => waitsSinceMs !== null && clock.monotonicMs() - waitsSinceMs < LONGEST_WAIT_MS,
    isAtRest: () => waitsSinceMs === null,
  }
}
