// The recent calls of one rate in bounded space: all calls of a quarter of a second are one burst, which counts until
// a minute after the end of that quarter. So no minute has more calls than the limit, and a caller waits at most a
// quarter of a second too long. Pure.

import { MINUTE } from '../../lib/clock.ts'

/** When the burst stops counting, and its number of calls. */
type Burst = readonly [endsMs: number, calls: number]

/** Oldest first. */
export type RateWindow = readonly Burst[]

const QUARTER_MS = 250

/** Returns the milliseconds until one more call may pass; 0 if it may now. */
export function waitMs(window: RateWindow, limit: number, nowMs: number): number {
  if (limit === 0) return MINUTE
  const live = liveOf(window, nowMs)
  let calls = callsOf(live)
  if (calls < limit) return 0
  for (const [endsMs, ended] of live) {
    calls -= ended
    if (calls < limit) return endsMs - nowMs
  }
  throw new Error('a limit of one or more cannot be used up by no calls')
}

/** Returns the window with one more call, without expired bursts. */
export function withCall(window: RateWindow, nowMs: number): RateWindow {
  const live = liveOf(window, nowMs)
  const endsMs = endOf(nowMs)
  const last = live.at(-1)
  return last && last[0] >= endsMs ? [...live.slice(0, -1), [last[0], last[1] + 1]] : [...live, [endsMs, 1]]
}

/**
 * Returns the window without one of the calls counted at that time. If that burst is unknown, an earlier one is
 * reduced, never a later one: the remaining calls count as long as they would have.
 */
export function withoutCall(window: RateWindow, countedMs: number): RateWindow {
  // Times written by another process differ by the drift between the clocks.
  const latestEndMs = endOf(countedMs) + QUARTER_MS / 2
  const index = window.findLastIndex(([endsMs]) => endsMs <= latestEndMs)
  const burst = window[index]
  if (!burst) return window
  const [endsMs, calls] = burst
  return calls === 1 ? window.toSpliced(index, 1) : window.with(index, [endsMs, calls - 1])
}

/** Returns how many calls count now, and when the last of them stops counting. */
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
