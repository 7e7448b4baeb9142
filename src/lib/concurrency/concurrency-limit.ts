// How many may be at something at once: in all, and of each key. Whoever is refused does not wait.

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
