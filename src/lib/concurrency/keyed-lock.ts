// A lock per key, granted in the order of the calls. The work must have its own timeout, because the lock waits for
// it.

export type KeyedLock = <T>(key: string, work: () => Promise<T>) => Promise<T>

export function createKeyedLock(): KeyedLock {
  const tails = new Map<string, Promise<unknown>>()
  return async (key, work) => {
    const before = tails.get(key) ?? Promise.resolve()
    const mine = before.then(work, work)
    // The tail never rejects: the failure of one holder must not fail the next.
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
