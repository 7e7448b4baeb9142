// Tells the operator, in the log, that somebody met a bound of the service, and who: `npm run doctor` reads it there
// (doctor/bounds.ts). Whoever meets one may do so a thousand times a second, so that one line a minute tells of all
// times since the last.

import { type Clock, MINUTE } from './clock.ts'
import type { Log } from './log.ts'

/** `bound`: a few words for the operator, never a caller's. `by`: the id of a team, or null where nobody knows whose. */
export type BoundMet = { bound: string; by: string | null }

export const BOUND_MET = 'a bound was met'
const EVERY_MS = MINUTE
/** Kept for each log: with more at once, some are told of more often. */
const MAX_KEPT = 1000

type Told = { atMs: number; times: number }
const told = new WeakMap<Log, Map<string, Told>>()

export function tellBoundMet({ log, clock }: { log: Log; clock: Clock }, { bound, by }: BoundMet): void {
  const kept = told.get(log) ?? new Map<string, Told>()
  told.set(log, kept)
  const key = `${bound}\n${by}`
  const before = kept.get(key)
  const nowMs = clock.monotonicMs()
  if (before && nowMs - before.atMs < EVERY_MS) {
    before.times += 1
    return
  }
  if (!before && kept.size >= MAX_KEPT) kept.clear()
  kept.set(key, { atMs: nowMs, times: 0 })
  log.warn({ bound, by, times: 1 + (before?.times ?? 0) }, BOUND_MET)
}
