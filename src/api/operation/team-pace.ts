// Slows a team that sends more than its share of calls while other teams call too. Rates are of credentials and of minutes:
// a team with several keys may spend a minute's calls in a few seconds, and every other team would wait for them
// (decisions/limits.md). Time is the machine's own, since this protects the machine.

import { rateLimited } from '../../contract/errors.ts'
import { type LimitLog, logLimitReached } from '../../lib/limit-reached.ts'
import { type Clock, SECOND, systemClock } from '../../lib/clock.ts'
import { createTokenBuckets } from '../../lib/concurrency/token-buckets.ts'

/** A team may call as fast as so many credentials that each spend their rate evenly, and at least this fast. */
export const CREDENTIALS = 8
const LEAST_A_SECOND = 40
/** It may make the calls of so many seconds at any speed. */
export const BURST_S = 2.5
const LONGEST_WAIT_MS = 10 * SECOND
/** A team counts as one that calls too for this long after its last call. */
const ACTIVE_FOR_MS = SECOND

export type TeamPace = {
  /**
   * Resolves when the call may go on: at once, or as late as the team's share demands. Throws `rateLimited` where that
   * were more than ten seconds. `cost`: in calls. `signal`: the call's, which ends the wait.
   */
  wait(call: { teamId: string; cost: number; signal: AbortSignal }): Promise<void>
}

type Last = { teamId: string; atMs: number } | null

/** A body of so many bytes counts like one more call: reading and checking it takes about as long. */
const BYTES_A_CALL = 200_000

export function costOfBody(bytes: number): number {
  return bytes / BYTES_A_CALL
}

export function createTeamPace(
  app: LimitLog & { config: { rates: { requests: number } } },
  machine: Pick<Clock, 'monotonicMs' | 'sleep'> = systemClock,
): TeamPace {
  const perSecond = Math.max(LEAST_A_SECOND, (CREDENTIALS * app.config.rates.requests) / 60)
  const shares = createTokenBuckets(BURST_S * perSecond, perSecond)
  let newest: Last = null
  let newestOfAnother: Last = null

  const isAnotherActive = (teamId: string, nowMs: number) => {
    if (newest !== null && newest.teamId !== teamId) newestOfAnother = newest
    newest = { teamId, atMs: nowMs }
    return newestOfAnother !== null && nowMs - newestOfAnother.atMs < ACTIVE_FOR_MS
  }

  return {
    wait: async ({ teamId, cost, signal }) => {
      const nowMs = machine.monotonicMs()
      const waitMs = shares.waitMs(teamId, cost, nowMs)
      const isContended = isAnotherActive(teamId, nowMs)
      if (waitMs > 0 && !isContended) return shares.forgive(teamId)
      if (waitMs > 0) logLimitReached(app, { bound: 'calls a second beside other teams', by: teamId })
      if (waitMs > LONGEST_WAIT_MS) {
        const seconds = Math.ceil(waitMs / SECOND)
        throw rateLimited(
          `The team sends more calls than its share while other teams call too; try again in ${seconds} seconds.`,
          seconds,
        )
      }
      shares.take(teamId, cost, nowMs)
      if (waitMs > 0) await machine.sleep(waitMs, signal).catch(() => {})
    },
  }
}
