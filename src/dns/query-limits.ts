// What one asker of the resolver may take, so that it cannot take everybody's.

/** So many in each second of the clock. */
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

export type Share = { enter(asker: string): boolean; leave(asker: string): void }

/** So many at once, in all and of each asker. */
export function createShare(total: number, each: number): Share {
  const inside = new Map<string, number>()
  let all = 0
  return {
    enter(asker) {
      const own = inside.get(asker) ?? 0
      if (all >= total || own >= each) return false
      all += 1
      inside.set(asker, own + 1)
      return true
    },
    leave(asker) {
      const own = (inside.get(asker) ?? 0) - 1
      all -= 1
      if (own > 0) inside.set(asker, own)
      else inside.delete(asker)
    },
  }
}
