// What a credential has spent lately of one of its rates, in few numbers however much it was: all calls of a quarter of a
// second are one burst, and count until a minute after that quarter's end. So never more pass in any minute than the limit
// says, and whoever has used it up waits at most a quarter of a second longer than he must. Pure.

import { MINUTE } from '../../lib/clock.ts'

/** Until when they count, and how many calls they are. */
type Burst = readonly [endsMs: number, calls: number]

/** Oldest first. */
export type RateWindow = readonly Burst[]

const QUARTER_MS = 250

/** Milliseconds until one more call may pass; 0 when it may now. */
export function waitMs(window: RateWindow, limit: number, nowMs: number): number {
  if (limit === 0) return MINUTE
  const live = liveOf(window, nowMs)
  let calls = callsOf(live)
  if (calls < limit) return 0
  for (const [endsMs, ended] of live) {
    calls -= ended
    if (calls < limit) return endsMs - nowMs
  }
  throw new Error('a limit of one or more is used up by nothing')
}

/** With one call more, and without what counts no longer. */
export function withCall(window: RateWindow, nowMs: number): RateWindow {
  const live = liveOf(window, nowMs)
  const endsMs = endOf(nowMs)
  const last = live.at(-1)
  return last && last[0] >= endsMs ? [...live.slice(0, -1), [last[0], last[1] + 1]] : [...live, [endsMs, 1]]
}

/**
 * Without one of the calls that were counted then. Where nothing is known of that quarter any more it goes off an earlier
 * one, never a later: what is left counts as long as it would have.
 */
export function withoutCall(window: RateWindow, countedMs: number): RateWindow {
  // Ends that another process wrote are off by how far the clocks have drifted since.
  const latestEndMs = endOf(countedMs) + QUARTER_MS / 2
  const index = window.findLastIndex(([endsMs]) => endsMs <= latestEndMs)
  const burst = window[index]
  if (!burst) return window
  const [endsMs, calls] = burst
  return calls === 1 ? window.toSpliced(index, 1) : window.with(index, [endsMs, calls - 1])
}

/** How many calls count now, and when none of them will any more. */
export function spentOf(window: RateWindow, nowMs: number): { calls: number; untilMs: number } {
  const live = liveOf(window, nowMs)
  return { calls: callsOf(live), untilMs: live.at(-1)?.[0] ?? nowMs }
}

function endOf(nowMs: number): number {
  return (Math.floor(nowMs / QUARTER_MS) + 1) * QUARTER_MS + MINUTE
}

function liveOf(window: RateWindow, nowMs: number): RateWindow {
  return window.filter(([endsMs]) => endsMs > nowMs)
}

function callsOf(window: RateWindow): number {
  return window.reduce((sum, [, calls]) => sum + calls, 0)
}
