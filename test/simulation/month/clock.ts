// A clock that stands still until it is advanced. A sleep ends when the clock gets there.

import type { Clock } from '../../../src/lib/clock.ts'

export type MonthClock = {
  /** Monotonic time in milliseconds. */
  elapsedMs: () => number
  /** The wall time of such a moment, by the present setting of the clock. */
  wallAt: (elapsedMs: number) => Date
  elapsedAt: (wall: Date) => number
  /** Advances to this time, or to the next end of a sleep. */
  goOn: (untilMs: number) => void
  /** The time at which the next sleep ends. */
  nextMs: () => number
  /** Sets the wall clock. */
  jump: (ms: number) => void
  reboot: () => void
  /** The clock of a process: its sleeps end with it. */
  for: (life: AbortSignal) => Clock
}

/** The first of a month. */
const BEGINNING = Date.UTC(2031, 0, 1)

export function createMonthClock(): MonthClock {
  let elapsedMs = 0
  let skewMs = 0
  let boots = 1
  let bootedMs = 0
  const sleepers = new Set<{ dueMs: number; wake: () => void }>()
  const wallAt = (ms: number) => new Date(BEGINNING + ms + skewMs)
  const nextMs = () => Math.min(Number.POSITIVE_INFINITY, ...[...sleepers].map(({ dueMs }) => dueMs))

  return {
    elapsedMs: () => elapsedMs,
    wallAt,
    elapsedAt: (wall) => wall.getTime() - BEGINNING - skewMs,
    nextMs,
    goOn: (untilMs) => {
      elapsedMs = Math.max(elapsedMs, Math.min(untilMs, nextMs()))
      for (const sleeper of sleepers) if (sleeper.dueMs <= elapsedMs) sleeper.wake()
    },
    jump: (ms) => {
      skewMs += ms
    },
    reboot: () => {
      boots += 1
      bootedMs = elapsedMs
    },
    for: (life) => ({
      now: () => wallAt(elapsedMs),
      monotonicMs: () => elapsedMs - bootedMs,
      get boot() {
        return `boot ${boots}`
      },
      sleep: async (ms, signal) => {
        signal?.throwIfAborted()
        const { promise, resolve, reject } = Promise.withResolvers<void>()
        const sleeper = { dueMs: elapsedMs + ms, wake: resolve }
        const onAbort = () => reject(signal?.reason)
        const onDeath = () => void sleepers.delete(sleeper)
        sleepers.add(sleeper)
        signal?.addEventListener('abort', onAbort, { once: true })
        life.addEventListener('abort', onDeath, { once: true })
        try {
          await promise
        } finally {
          sleepers.delete(sleeper)
          signal?.removeEventListener('abort', onAbort)
          life.removeEventListener('abort', onDeath)
        }
      },
    }),
  }
}
