// Counts by key what may be used at once and what comes back each second. A key may take more than it has: how long it
// must wait until that has come back is for the caller to respect.

import { SECOND } from '../clock.ts'

export type TokenBuckets = {
  /** Returns the milliseconds until the key has so many tokens; 0 if it has them now. */
  waitMs(key: string, tokens: number, nowMs: number): number
  take(key: string, tokens: number, nowMs: number): void
  /** The key owes nothing for what it took. */
  forgive(key: string): void
}

/** Above this number of keys, the one idle longest is dropped. */
const MAX_KEYS = 10_000

type Bucket = { tokens: number; atMs: number }

export function createTokenBuckets(burst: number, perSecond: number): TokenBuckets {
  const buckets = new Map<string, Bucket>()
  const left = (key: string, nowMs: number) => {
    const bucket = buckets.get(key)
    if (!bucket) return burst
    return Math.min(burst, bucket.tokens + ((nowMs - bucket.atMs) / SECOND) * perSecond)
  }
  return {
    waitMs: (key, tokens, nowMs) => Math.max(0, ((tokens - left(key, nowMs)) / perSecond) * SECOND),
    take: (key, tokens, nowMs) => {
      const bucket = { tokens: left(key, nowMs) - tokens, atMs: nowMs }
      // Deleting and setting an entry moves it to the end, so the map is in order of last use.
      buckets.delete(key)
      buckets.set(key, bucket)
      const [quietest] = buckets.keys()
      if (buckets.size > MAX_KEYS && quietest !== undefined) buckets.delete(quietest)
    },
    forgive: (key) => void buckets.delete(key),
  }
}
