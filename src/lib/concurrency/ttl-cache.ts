// Caches an async reading for `forMs` and shares one in-flight read.

import type { Clock } from '../clock.ts'

export type TtlCacheOptions = {
  clock: Clock
  /** The maximum age of a result. */
  forMs: number
  /** The timeout of a read. */
  withinMs: number
}

/** Resolves to null if the read fails or times out; never throws. */
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
