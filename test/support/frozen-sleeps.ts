// A service whose waits end only when a test lets time pass: what must have happened "within five seconds" has happened when
// five seconds were let pass, however slow the host is, or it never does.

import type { TestClock } from './clock.ts'

export type FrozenSleeps = {
  /** Lets so much pass, and ends the waits that are over with it, in their order. */
  pass: (ms: number) => Promise<void>
  /** Ends all waits, and has later ones go by the clock again. */
  thaw: () => void
}

type Wait = { atMs: number; end: () => void }

export function freezeSleeps(clock: TestClock): FrozenSleeps {
  const real = clock.sleep.bind(clock)
  const waits = new Set<Wait>()
  let nowMs = 0
  clock.sleep = async (ms, signal) => {
    signal?.throwIfAborted()
    await new Promise<void>((resolve, reject) => {
      const leave = (then: () => void) => () => {
        waits.delete(wait)
        signal?.removeEventListener('abort', aborted)
        then()
      }
      const wait: Wait = { atMs: nowMs + ms, end: leave(resolve) }
      const aborted = leave(() => reject(signal?.reason as Error))
      waits.add(wait)
      signal?.addEventListener('abort', aborted, { once: true })
    })
  }
  return {
    pass: async (ms) => {
      const untilMs = nowMs + ms
      for (;;) {
        const [next] = [...waits].toSorted((one, other) => one.atMs - other.atMs)
        if (!next || next.atMs > untilMs) break
        nowMs = next.atMs
        next.end()
        // What it leads to may wait again within the same time.
        await new Promise((resolve) => void setImmediate(resolve))
      }
      nowMs = untilMs
    },
    thaw: () => {
      clock.sleep = real
      for (const wait of waits) wait.end()
    },
  }
}
