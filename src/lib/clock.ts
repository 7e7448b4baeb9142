// Time as a dependency, so that tests control it: wall time for records, monotonic time for durations (reliability
// rule 18).

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
  /** Milliseconds that never jump, for durations and deadlines. They stop while the host is suspended. */
  monotonicMs(): number
  /** Identifies the boot of the host: in one boot, all processes share the monotonic time. */
  boot: string
  /** Resolves after `ms`; rejects with the signal's reason when aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

export const systemClock: Clock = {
  now: () => new Date(),
  // Not performance.now(), which counts from the start of the process.
  monotonicMs: () => Number(process.hrtime.bigint()) / 1e6,
  boot: readBoot(),
  sleep: async (ms, signal) => {
    await delay(ms, undefined, signal ? { signal } : {})
  },
}

/** If the kernel does not say, every process gets an id of its own. */
function readBoot(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return randomUUID()
  }
}
