// One run of an expensive thing per key at a time; everyone who asks meanwhile gets the same outcome.

import type { Clock } from '../clock.ts'

export type SingleFlight<T> = {
  /**
   * A run that has taken longer than `maxMs` is given up on and another one begun, whatever becomes of it: a
   * promise that never settles must not stand in the way for good.
   */
  run(key: string, maxMs: number, work: () => Promise<T>): Promise<T>
  /** The run under way, if there is one. */
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
