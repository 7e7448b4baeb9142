// A clock a test can set: time passes as it does, and `advance` lets more of it pass, ending every wait that
// would have ended meanwhile. `jump` sets the wall clock alone, as an operator or a suspended host does.

import { setTimeout as delay } from 'node:timers/promises'
import type { Clock } from '../../src/lib/clock.ts'

export type TestClock = Clock & {
  advance(ms: number): void
  jump(ms: number): void
  /** From here on monotonic time cannot be compared with what it was before. */
  reboot(): void
}

export function createTestClock(): TestClock {
  let aheadMs = 0
  let jumpedMs = 0
  let boots = 1
  let bootedMs = 0
  const waits = new Set<{ untilMs: number; end: () => void }>()
  const monotonicMs = () => performance.now() + aheadMs - bootedMs

  return {
    now: () => new Date(Date.now() + aheadMs + jumpedMs),
    monotonicMs,
    get boot() {
      return `boot ${boots}`
    },
    async sleep(ms, signal) {
      const jumped = new AbortController()
      const wait = { untilMs: monotonicMs() + ms, end: () => jumped.abort() }
      waits.add(wait)
      try {
        const signals = [jumped.signal, ...(signal ? [signal] : [])]
        await delay(Math.min(ms, 2 ** 31 - 1), undefined, { signal: AbortSignal.any(signals) })
      } catch (error) {
        signal?.throwIfAborted()
        if (!jumped.signal.aborted) throw error
      } finally {
        waits.delete(wait)
      }
    },
    advance(ms) {
      aheadMs += ms
      for (const wait of waits) if (wait.untilMs <= monotonicMs()) wait.end()
    },
    jump(ms) {
      jumpedMs += ms
    },
    reboot() {
      boots += 1
      bootedMs = performance.now() + aheadMs
    },
  }
}
