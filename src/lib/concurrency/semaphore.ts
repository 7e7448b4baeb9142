// At most so many at once; the others wait their turn, first come first served.

export type Turns = <T>(work: () => Promise<T>) => Promise<T>

export function createTurns(max: number): Turns {
  const waiting: (() => void)[] = []
  let running = 0

  return async (work) => {
    if (running === max) await new Promise<void>((resolve) => waiting.push(resolve))
    else running += 1
    try {
      return await work()
    } finally {
      // A turn goes straight to the next in line, so that nobody can slip in between.
      const next = waiting.shift()
      if (next) next()
      else running -= 1
    }
  }
}
