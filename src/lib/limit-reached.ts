// Logs for the operator that a limit of the service was reached, and by whom; `npm run doctor` reads these lines
// (doctor/bounds.ts). A limit may be reached a thousand times a second, so each line covers all times within a minute;
// after the first hundred lines of a minute the rest are combined into one.

import { type Clock, MINUTE } from './clock.ts'
import type { Log } from './log.ts'

/**
 * `bound`: a few words for the operator, never a caller's. `by`: the id of a team or a unit, or the address of a peer
 * (for IPv6 its network); null if it is unknown, or the limit is shared by all.
 */
export type LimitReached = { bound: string; by: string | null }

/** Where the line is logged, and the time that counts. */
export type LimitLog = { log: Log; clock: Clock }

export const LIMIT_REACHED = 'a bound was met'
const EVERY_MS = MINUTE
const MAX_LINES = 100
/** Per log: with more at once, some are logged more often. */
const MAX_KEPT = 1000

type LoggedLine = { atMs: number; times: number }
/** The lines logged since then, and how many were suppressed. */
type Logged = { lines: Map<string, LoggedLine>; sinceMs: number; count: number; suppressed: number }
const loggedTo = new WeakMap<Log, Logged>()

export function logLimitReached({ log, clock }: LimitLog, { bound, by }: LimitReached): void {
  const nowMs = clock.monotonicMs()
  const logged = loggedTo.get(log) ?? {
    lines: new Map<string, LoggedLine>(),
    sinceMs: nowMs,
    count: 0,
    suppressed: 0,
  }
  loggedTo.set(log, logged)
  const key = `${bound}\n${by}`
  const before = logged.lines.get(key)
  if (before && nowMs - before.atMs < EVERY_MS) {
    before.times += 1
    return
  }
  if (nowMs - logged.sinceMs >= EVERY_MS) {
    if (logged.suppressed > 0)
      log.warn({ bound: 'others', by: null, times: logged.suppressed }, LIMIT_REACHED)
    Object.assign(logged, { sinceMs: nowMs, count: 0, suppressed: 0 })
  }
  if (logged.count >= MAX_LINES) {
    logged.suppressed += 1
    return
  }
  logged.count += 1
  if (!before && logged.lines.size >= MAX_KEPT) logged.lines.clear()
  logged.lines.set(key, { atMs: nowMs, times: 0 })
  log.warn({ bound, by, times: 1 + (before?.times ?? 0) }, LIMIT_REACHED)
}
