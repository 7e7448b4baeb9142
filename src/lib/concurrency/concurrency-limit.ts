// Limits concurrency in total and per key. There is no queue: a refused caller does not wait.

export type ConcurrencyLimit = {
  /** Returns false if that were more than the limit. `amount`: 1 unless told. */
  tryAcquire(key: string, amount?: number): boolean
  release(key: string, amount?: number): void
  /** How much is in progress for the key. */
  count(key: string): number
}

export function createConcurrencyLimit(total: number, each: number): ConcurrencyLimit {
  const inside = new Map<string, number>()
  let all = 0
  return {
    tryAcquire(key, amount = 1) {
      const own = inside.get(key) ?? 0
      if (own + amount > each || all + amount > total) return false
      all += amount
      inside.set(key, own + amount)
      return true
    },
    release(key, amount = 1) {
      const own = (inside.get(key) ?? 0) - amount
      all -= amount
      if (own > 0) inside.set(key, own)
      else inside.delete(key)
    },
    count: (key) => inside.get(key) ?? 0,
  }
}
