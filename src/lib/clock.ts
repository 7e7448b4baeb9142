// Time as a value that is handed in, so that tests own it: wall time for what is recorded,
// monotonic time for what is measured (reliability rule 18).

import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

export const SECOND = 1000
export const MINUTE = 60 * SECOND
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR

export type Clock = {
  /** Wall time, for records. It jumps when the host's clock is set. */
  now(): Date
  /** Milliseconds that never jump, for durations and deadlines. They stand still while the host is suspended. */
  monotonicMs(): number
  /** Names the run of the host they are counted in: within it, all processes count the same. */
  boot: string
  /** Resolves after `ms`; rejects with the signal's reason when aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

export const systemClock: Clock = {
  now: () => new Date(),
  // Not performance.now(), which counts from the start of its own process.
  monotonicMs: () => Number(process.hrtime.bigint()) / 1e6,
  boot: readBoot(),
  sleep: async (ms, signal) => {
    await delay(ms, undefined, signal ? { signal } : {})
  },
}

/** Where the kernel does not say, no two processes are taken to be of one boot. */
function readBoot(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return randomUUID()
  }
}
