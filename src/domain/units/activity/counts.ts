// Counts something per unit, such as the commands in progress.

export type Counts = {
  /** Adds one. Call the returned function once when it has ended. */
  begin: (id: string) => () => void
  has: (id: string) => boolean
  of: (id: string) => number
  /** The units with any. */
  ids: () => string[]
}

export function createCounts(): Counts {
  const counts = new Map<string, number>()
  const of = (id: string) => counts.get(id) ?? 0
  return {
    begin: (id) => {
      counts.set(id, of(id) + 1)
      return () => {
        const left = of(id) - 1
        if (left > 0) counts.set(id, left)
        else counts.delete(id)
      }
    },
    has: (id) => counts.has(id),
    of,
    ids: () => [...counts.keys()],
  }
}
