// How many may be at something at once: in all, and of each key. Whoever is refused does not wait.

export type ConcurrencyLimit = {
  /** False: there is no room. */
  tryAcquire(key: string): boolean
  release(key: string): void
  /** How many of the key are in. */
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
