// How fast output is taken, and told: a process that prints as fast as it can, or byte by byte, and a crowd that reads it
// must not keep the engine from its work. What is not taken yet waits in the pipe, and then the process waits.

import type { Clock } from '../../../lib/clock.ts'

/** Of all processes of one team together. */
const BYTES_PER_MS = 16 * 1024
/** What each time costs, however little it is about. */
const LEAST_BYTES = 16 * 1024
/** Teams that have not printed for long are forgotten now and then. */
const MAX_TEAMS = 1000

export type Pace = {
  /** Says in how many milliseconds the next bytes of the team may be taken. */
  spend(team: number, bytes: number): number
}

export function createPace(clock: Clock): Pace {
  const freeAt = new Map<number, number>()
  return {
    spend(team, bytes) {
      const now = clock.monotonicMs()
      const from = Math.max(freeAt.get(team) ?? 0, now)
      freeAt.set(team, from + (LEAST_BYTES + bytes) / BYTES_PER_MS)
      if (freeAt.size > MAX_TEAMS) for (const [id, at] of freeAt) if (at < now) freeAt.delete(id)
      return from - now
    },
  }
}
