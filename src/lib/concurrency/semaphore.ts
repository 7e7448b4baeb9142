// Limits how much work runs at once: what is more waits, in the order in which it came.

export type Semaphore = <T>(work: () => Promise<T>) => Promise<T>

export function createSemaphore(places: number): Semaphore {
  const waiting: (() => void)[] = []
  let inside = 0
  return async (work) => {
    if (inside >= places) await new Promise<void>((resolve) => waiting.push(resolve))
    else inside += 1
    try {
      return await work()
    } finally {
      // The next one takes over the place.
      const next = waiting.shift()
      if (next) next()
      else inside -= 1
    }
  }
}
