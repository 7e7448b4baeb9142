// A clock a test can set forward: time passes as it does, and jumps when told to, ending every wait that
// would have ended meanwhile.

import { setTimeout as delay } from 'node:timers/promises'
import type { Clock } from '../../src/lib/clock.ts'

export type TestClock = Clock & { advance(ms: number): void }

export function createTestClock(): TestClock {
  let aheadMs = 0
  const waits = new Set<{ untilMs: number; end: () => void }>()
  const monotonicMs = () => performance.now() + aheadMs

  return {
    now: () => new Date(Date.now() + aheadMs),
    monotonicMs,
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
  }
}
