// Wall time that does not jump by itself. The host's wall clock may be set by an hour at any moment, or found
// ten minutes ahead after a suspend; whatever is reckoned with it then sleeps, ends or is billed as if that
// time had passed. So this clock goes on at the pace of monotonic time until somebody who has moved along
// whatever is stored tells it to follow. Small steps and slow corrections it follows by itself.

import { type Clock, SECOND } from './clock.ts'

/** `offsetMs`: wall time less monotonic time from then on. */
export type Jump = { from: Date; to: Date; offsetMs: number }

export type ServiceClock = Clock & {
  /** Wall time less monotonic time, as this clock goes by now. */
  offsetMs(): number
  /** Goes on from where another process of this boot has left it, though the wall clock jumped since. */
  resume(offsetMs: number): void
  /** How far the wall clock is ahead of this one (or behind, if negative); 0 while this one follows it. */
  jumpedMs(): number
  /**
   * Runs work that reads the time and writes it down. The time does not change over meanwhile, so work like
   * this must be short and hold no lock when it begins.
   */
  withStableTime<T>(work: () => Promise<T>): Promise<T>
  /**
   * Follows the wall clock once `work` has moved along what is stored. Until then the time stays what it was,
   * `withStableTime` waits, and when `work` throws nothing has changed.
   */
  adoptJump(work: (jump: Jump) => Promise<void>): Promise<void>
}

/** Clocks are stepped by a second now and then (leap seconds, NTP); that hurts nobody. */
export const TOLERATED_JUMP_MS = 2 * SECOND
/** Work that holds the time for longer hangs. What it writes may then be off by the jump. */
const STABLE_TIMEOUT_MS = 5 * SECOND

export function createServiceClock(source: Clock): ServiceClock {
  const wallOffsetMs = () => source.now().getTime() - source.monotonicMs()
  let offsetMs = wallOffsetMs()
  let following: Promise<void> | null = null
  const holding = new Set<Promise<unknown>>()

  const jumpedMs = () => {
    const aheadMs = wallOffsetMs() - offsetMs
    if (Math.abs(aheadMs) > TOLERATED_JUMP_MS) return aheadMs
    offsetMs += aheadMs
    return 0
  }
  const now = () => (jumpedMs() === 0 ? source.now() : new Date(source.monotonicMs() + offsetMs))

  async function changeOver(work: (jump: Jump) => Promise<void>): Promise<void> {
    const pause = new AbortController()
    const tooLong = source.sleep(STABLE_TIMEOUT_MS, pause.signal).catch(() => {})
    await Promise.race([Promise.allSettled(holding), tooLong])
    pause.abort()
    const jump = { from: now(), to: source.now(), offsetMs: wallOffsetMs() }
    await work(jump)
    offsetMs = jump.offsetMs
  }

  return {
    now,
    monotonicMs: () => source.monotonicMs(),
    boot: source.boot,
    sleep: (ms, signal) => source.sleep(ms, signal),
    offsetMs: () => offsetMs,
    resume: (from) => {
      offsetMs = from
    },
    jumpedMs,
    withStableTime: async (work) => {
      while (following) await following.catch(() => {})
      const held = work()
      holding.add(held)
      try {
        return await held
      } finally {
        holding.delete(held)
      }
    },
    adoptJump: async (work) => {
      if (following) return await following
      following = changeOver(work).finally(() => {
        following = null
      })
      await following
    },
  }
}
