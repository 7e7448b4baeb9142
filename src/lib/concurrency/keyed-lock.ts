// One holder a key at a time, in the order of asking. Holders must be bounded in time themselves: the lock
// waits as long as they do.

export type KeyedLock = <T>(key: string, work: () => Promise<T>) => Promise<T>

export function createKeyedLock(): KeyedLock {
  const tails = new Map<string, Promise<unknown>>()
  return async (key, work) => {
    const before = tails.get(key) ?? Promise.resolve()
    const mine = before.then(work, work)
    // The tail never rejects: a failed holder must not fail the next one.
    const tail = mine.then(
      () => undefined,
      () => undefined,
    )
    tails.set(key, tail)
    try {
      return await mine
    } finally {
      if (tails.get(key) === tail) tails.delete(key)
    }
  }
}
