// Wall time without jumps. The host's wall clock may be set by an hour at any time, or be minutes ahead after a
// suspend; units would then sleep, expire or be billed as if that time had passed. This clock therefore advances with
// monotonic time until `adoptJump` has shifted the stored times. It follows small steps and slow corrections by
// itself.

import { type Clock, SECOND } from './clock.ts'

/** `offsetMs`: the new difference of wall time minus monotonic time. */
export type Jump = { from: Date; to: Date; offsetMs: number }

export type ServiceClock = Clock & {
  /** The current difference of wall time minus monotonic time, as this clock uses it. */
  offsetMs(): number
  /** Continues with the offset that another process of this boot used, even if the wall clock has jumped since. */
  resume(offsetMs: number): void
  /** How far the wall clock is ahead of this one (or behind, if negative); 0 while this one follows it. */
  jumpedMs(): number
  /**
   * Runs work that reads the time and writes it. The time does not jump during it, so the work must be short and hold
   * no lock when it begins.
   */
  withStableTime<T>(work: () => Promise<T>): Promise<T>
  /**
   * Follows the wall clock once `work` has shifted the stored times. Until then the time stays, and `withStableTime`
   * waits; if `work` throws, nothing changes.
   */
  adoptJump(work: (jump: Jump) => Promise<void>): Promise<void>
}

/** Clocks are stepped by up to a second now and then (leap seconds, NTP), which is harmless. */
export const TOLERATED_JUMP_MS = 2 * SECOND
/** Work that takes longer is considered hung. The times it writes may then be off by the jump. */
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
