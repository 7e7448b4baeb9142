// Tells the operator, in the log, that somebody met a bound of the service, and who: `npm run doctor` reads it there
// (doctor/bounds.ts). Whoever meets one may do so a thousand times a second, so that one line a minute tells of all
// times since the last; and may be a thousand, so that those beyond the first hundred of a minute are told of together.

import { type Clock, MINUTE } from './clock.ts'
import type { Log } from './log.ts'

/**
 * `bound`: a few words for the operator, never a caller's. `by`: the id of a team or a unit, or the address of a peer
 * (of IPv6 its network), whichever the bound is of; null where nobody knows whose, or all have met it together.
 */
export type BoundMet = { bound: string; by: string | null }

export const BOUND_MET = 'a bound was met'
const EVERY_MS = MINUTE
const MAX_LINES = 100
/** Kept for each log: with more at once, some are told of more often. */
const MAX_KEPT = 1000

type Told = { atMs: number; times: number }
/** `lines` since then, and how many times were not told. */
type Spoken = { told: Map<string, Told>; sinceMs: number; lines: number; untold: number }
const spoken = new WeakMap<Log, Spoken>()

export function tellBoundMet({ log, clock }: { log: Log; clock: Clock }, { bound, by }: BoundMet): void {
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
