// Time as a dependency, so that tests control it: wall time for records, monotonic time for durations (reliability
// rule 18).

import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'

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
  // Not that of `node:timers/promises`, which makes an error with a stack of its own for each wait that is aborted, as most
  // are: they are deadlines.
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const abort = () => {
        clearTimeout(timer)
        reject(signal?.reason)
      }
      const timer = setTimeout(() => {
        signal?.removeEventListener('abort', abort)
        resolve()
      }, ms)
      signal?.addEventListener('abort', abort, { once: true })
    }),
}

/** Why a wait was aborted that is not needed any more: made once, since `abort()` alone makes an error each time. */
export const NOT_NEEDED = new Error('not needed any more')

/** If the kernel does not say, every process gets an id of its own. */
function readBoot(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return randomUUID()
  }
}
