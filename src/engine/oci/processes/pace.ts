// Limits how fast output is read and reported, so that processes that print as fast as they can, or byte by byte, and
// many readers do not exhaust the engine. Unread output waits in the pipe, and then the process blocks.

import type { Clock } from '../../../lib/clock.ts'

/** For all processes of one team together. */
const BYTES_PER_MS = 16 * 1024
/** The least cost of a read, however small it is. */
const LEAST_BYTES = 16 * 1024
/** Above this number, teams that have not printed for long are dropped. */
const MAX_TEAMS = 1000

export type Pace = {
  /** Returns in how many milliseconds the team's next bytes may be read. */
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
