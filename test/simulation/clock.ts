// A clock that stands still until the simulator advances it. Its wall time can be set independently of its monotonic
// time, as on a host whose clock is set.

import type { Clock } from '../../src/lib/clock.ts'
import type { Gates, Life } from './gates.ts'

export type SimulatedClock = {
  elapsedMs: () => number
  now: () => Date
  advance: (ms: number) => void
  /** Sets the wall clock forward or back. */
  jump: (ms: number) => void
  hasJumped: () => boolean
  /** Restarts the monotonic time, as a boot of the host does. */
  reboot: () => void
  for: (life: Life) => Clock
}

/** Noon of an ordinary day. */
const BEGINNING = Date.UTC(2030, 4, 15, 12)

export function createSimulatedClock(gates: Gates): SimulatedClock {
  let elapsedMs = 0
  let skewMs = 0
  let jumps = 0
  let boots = 1
  let bootedMs = 0
  const now = () => new Date(BEGINNING + elapsedMs + skewMs)
  return {
    elapsedMs: () => elapsedMs,
    now,
    advance: (ms) => {
      elapsedMs += ms
    },
    jump: (ms) => {
      skewMs += ms
      jumps += 1
    },
    hasJumped: () => jumps > 0,
    reboot: () => {
      boots += 1
      bootedMs = elapsedMs
    },
    for: (life) => ({
      now,
      monotonicMs: () => elapsedMs - bootedMs,
      get boot() {
        return `boot ${boots}`
      },
      sleep: async (ms, signal) =>
        await gates.pass(life, 'clock', 'goes on', { dueMs: elapsedMs + ms, signal }),
    }),
  }
}
