// Runs the work of a key once at a time; callers that arrive meanwhile share its result.

import type { Clock } from '../clock.ts'

export type SingleFlight<T> = {
  /**
   * A run that takes longer than `maxMs` is abandoned and the next call starts another, so that a promise that never
   * settles does not block the key for ever.
   */
  run(key: string, maxMs: number, work: () => Promise<T>): Promise<T>
  /** Returns the run in progress, or null. */
  find(key: string): Promise<T> | null
}

export function createSingleFlight<T>(clock: Clock): SingleFlight<T> {
  const inFlight = new Map<string, { promise: Promise<T>; untilMs: number }>()
  return {
    run(key, maxMs, work) {
      const running = inFlight.get(key)
      if (running && clock.monotonicMs() < running.untilMs) return running.promise
      const promise = work().finally(() => {
        if (inFlight.get(key)?.promise === promise) inFlight.delete(key)
      })
      inFlight.set(key, { promise, untilMs: clock.monotonicMs() + maxMs })
      return promise
    },
    find: (key) => inFlight.get(key)?.promise ?? null,
  }
}
