// Counts how many creates of one kind come at once. A caller that starts ten units at a time finds ten machines ready, after it has
// done so twice.

import { SECOND } from '../../../lib/clock.ts'

export type Burst = { lastMs: number; creates: number }

/** Creates with no longer pause between them came at once. */
const PAUSE_MS = 2 * SECOND
const MAX_BURSTS = 20
/** Of one kind. */
export const MAX_READY = 10

/** Returns the bursts with one more create, without those that ended before `sinceMs`. */
export function withCreate(bursts: Burst[], nowMs: number, sinceMs: number): Burst[] {
  const kept = bursts.filter(({ lastMs }) => lastMs >= sinceMs)
  const last = kept.at(-1)
  if (last === undefined || nowMs - last.lastMs > PAUSE_MS)
    return [...kept, { lastMs: nowMs, creates: 1 }].slice(-MAX_BURSTS)
  return [...kept.slice(0, -1), { lastMs: nowMs, creates: last.creates + 1 }]
}

/** As many as came at once twice. */
export function readyFor(bursts: Burst[], atLeast: number): number {
  const [, second = 0] = bursts.map(({ creates }) => creates).toSorted((one, other) => other - one)
  return Math.max(atLeast, Math.min(second, MAX_READY))
}
