// Time as a value that is handed in, so that tests own it: wall time for what is recorded,
// monotonic time for what is measured (reliability rule 18).

import { setTimeout as delay } from 'node:timers/promises'

export const SECOND = 1000
export const MINUTE = 60 * SECOND
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR

export type Clock = {
  /** Wall time, for records. */
  now(): Date
  /** Milliseconds that never jump, for durations and deadlines. */
  monotonicMs(): number
  /** Resolves after `ms`; rejects with the signal's reason when aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

export const systemClock: Clock = {
  now: () => new Date(),
  monotonicMs: () => performance.now(),
  sleep: async (ms, signal) => {
    await delay(ms, undefined, signal ? { signal } : {})
  },
}
