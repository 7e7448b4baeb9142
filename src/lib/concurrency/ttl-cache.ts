// Caches an async reading for `forMs` and shares one in-flight read.

import type { Clock } from '../clock.ts'

export type TtlCacheOptions = {
  clock: Clock
  /** How old an answer may be. */
  forMs: number
  /** How long a reading may take. */
  withinMs: number
}

/** Answers null, and never throws, where the reading fails or takes too long: nobody knows then. */
export function cachedFor<T>(
  { clock, forMs, withinMs }: TtlCacheOptions,
  read: () => Promise<T>,
): () => Promise<T | null> {
  let last: { value: Promise<T | null>; untilMs: number } | null = null

  const readWithin = async (): Promise<T | null> => {
    const done = new AbortController()
    const late = clock.sleep(withinMs, done.signal).then(
      () => null,
      () => null,
    )
    try {
      return await Promise.race([read(), late])
    } catch {
      return null
    } finally {
      done.abort()
    }
  }

  return () => {
    if (last && clock.monotonicMs() < last.untilMs) return last.value
    const reading = { value: readWithin(), untilMs: Infinity }
    last = reading
    void reading.value.then(() => {
      reading.untilMs = clock.monotonicMs() + forMs
    })
    return reading.value
  }
}
