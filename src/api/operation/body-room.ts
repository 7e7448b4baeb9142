// Limits the memory of bodies that are being read or worked with, of one team and of all teams (decisions/limits.md). A
// body counts as long as it says it is, from before it is read until its call has been answered: a client may send it
// slowly.

import { rateLimited, unavailable } from '../../contract/errors.ts'
import { type LimitLog, logLimitReached } from '../../lib/limit-reached.ts'
import { createConcurrencyLimit } from '../../lib/concurrency/concurrency-limit.ts'

/** As much as the output of a team's commands may take (decisions/limits.md). */
export const TEAM_BODY_BYTES = 128 * 1024 * 1024
/** The limit of all teams together is this many times the limit of one team. */
const TEAMS = 4
const RETRY_AFTER_S = 1

export type BodyRoom = {
  /**
   * Returns a function to call once when the call has been answered. Throws `rateLimited` (the team's limit) or
   * `unavailable` (the limit of all teams).
   */
  take(teamId: string, bytes: number): () => void
}

export function createBodyRoom(app: LimitLog): BodyRoom {
  const limit = createConcurrencyLimit(TEAMS * TEAM_BODY_BYTES, TEAM_BODY_BYTES)
  return {
    take(teamId, bytes) {
      if (limit.tryAcquire(teamId, bytes)) return () => limit.release(teamId, bytes)
      logLimitReached(app, { bound: 'bodies at once', by: teamId })
      if (limit.count(teamId) + bytes > TEAM_BODY_BYTES) {
        const most = `The team sends bodies of ${TEAM_BODY_BYTES / 1024 / 1024} MB at once, which is the limit`
        throw rateLimited(`${most}; try again when one of its calls has been answered.`, RETRY_AFTER_S)
      }
      throw unavailable(
        'The service reads too many bodies at once; try again in a few seconds.',
        RETRY_AFTER_S,
      )
    },
  }
}
