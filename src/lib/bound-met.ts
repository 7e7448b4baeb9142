// Logs for the operator that a limit of the service was met, and by whom; `npm run doctor` reads these lines
// (doctor/bounds.ts). A limit may be met a thousand times a second, so each line covers all times within a minute;
// after the first hundred lines of a minute the rest are combined into one.

import { type Clock, MINUTE } from './clock.ts'
import type { Log } from './log.ts'

/**
 * `bound`: a few words for the operator, never a caller's. `by`: the id of a team or a unit, or the address of a peer
 * (for IPv6 its network); null if it is unknown, or the limit is shared by all.
 */
export type BoundMet = { bound: string; by: string | null }

/** Where the line is logged, and the time that counts. */
export type BoundSource = { log: Log; clock: Clock }

export const BOUND_MET = 'a bound was met'
const EVERY_MS = MINUTE
const MAX_LINES = 100
/** Per log: with more at once, some are logged more often. */
const MAX_KEPT = 1000

type Told = { atMs: number; times: number }
/** The lines logged since then, and how many were suppressed. */
type Spoken = { told: Map<string, Told>; sinceMs: number; lines: number; untold: number }
const spoken = new WeakMap<Log, Spoken>()

export function tellBoundMet({ log, clock }: BoundSource, { bound, by }: BoundMet): void {
  const nowMs = clock.monotonicMs()
  const state = spoken.get(log) ?? { told: new Map<string, Told>(), sinceMs: nowMs, lines: 0, untold: 0 }
  spoken.set(log, state)
  const { told } = state
  const key = `${bound}\n${by}`
  const before = told.get(key)
  if (before && nowMs - before.atMs < EVERY_MS) {
    before.times += 1
    return
  }
  if (nowMs - state.sinceMs >= EVERY_MS) {
    if (state.untold > 0) log.warn({ bound: 'others', by: null, times: state.untold }, BOUND_MET)
    Object.assign(state, { sinceMs: nowMs, lines: 0, untold: 0 })
  }
  if (state.lines >= MAX_LINES) {
    state.untold += 1
    return
  }
  state.lines += 1
  if (!before && told.size >= MAX_KEPT) told.clear()
  told.set(key, { atMs: nowMs, times: 0 })
  log.warn({ bound, by, times: 1 + (before?.times ?? 0) }, BOUND_MET)
}
