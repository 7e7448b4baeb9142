// Limits what one client of the resolver may use, so that it cannot exhaust the resolver.

/** Allows this many in each second of the clock. */
export function createRate(perSecond: number): (asker: string) => boolean {
  let second = 0
  let seen = new Map<string, number>()
  return (asker) => {
    const now = Math.floor(performance.now() / 1000)
    if (now !== second) {
      second = now
      seen = new Map()
    }
    const count = (seen.get(asker) ?? 0) + 1
    seen.set(asker, count)
    return count <= perSecond
  }
}
