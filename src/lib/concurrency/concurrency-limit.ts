// Limits concurrency in total and per key. There is no queue: a refused caller does not wait.

export type ConcurrencyLimit = {
  /** Returns false at the limit. */
  tryAcquire(key: string): boolean
  release(key: string): void
  /** How many are in progress for the key. */
  count(key: string): number
}

export function createConcurrencyLimit(total: number, each: number): ConcurrencyLimit {
  const inside = new Map<string, number>()
  let all = 0
  return {
    tryAcquire(key) {
      const own = inside.get(key) ?? 0
      if (own >= each || all >= total) return false
      all += 1
      inside.set(key, own + 1)
      return true
    },
    release(key) {
      const own = (inside.get(key) ?? 0) - 1
      all -= 1
      if (own > 0) inside.set(key, own)
      else inside.delete(key)
    },
    count: (key) => inside.get(key) ?? 0,
  }
}
