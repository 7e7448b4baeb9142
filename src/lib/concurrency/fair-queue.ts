// Who goes in next of many that wait. Owners take turns, so that one with hundreds waiting is no hindrance to
// one with a few; of one owner's, whoever came first goes first. Pure: it knows neither the time nor what it
// lets in (lib/concurrency/admission-queue.ts does).
//
// What holds: no more have a place than there are; nobody goes in while what those inside weigh exceeds the
// room, or while as many of the same owner are inside as may be; whoever waits goes in once those before it have
// given their places up.

export type Entry = { readonly owner: string; readonly weight: number }

export type Capacity = {
  /** How many may have a place at once. */
  places: number
  /** What those inside may weigh before one more goes in. Below zero nobody does. */
  weight: number
}

/** `perOwner` and `inAll` may wait; `insidePerOwner` may be inside, where that is bounded. */
export type QueueBounds = { perOwner: number; inAll: number; insidePerOwner?: number }

export type FairQueue<E extends Entry> = {
  /** Too many wait already, of this owner or in all. */
  isFull(owner: string): boolean
  /** False: it is full. */
  join(entry: E): boolean
  /** Who goes in now, in order. Each has a place from here on. */
  admit(room: Capacity): E[]
  /** It stays inside and weighs, and lets another have its place. */
  releasePlace(entry: E): void
  /** It is gone, wherever it was. */
  leave(entry: E): void
  isInside(entry: E): boolean
  /** Owners with one that waits for nothing but another of their own. */
  atTheirBound(): string[]
  /** How many wait. */
  waiting(): number
  /** What those inside weigh. */
  weight(): number
}

export function createFairQueue<E extends Entry>(bounds: QueueBounds): FairQueue<E> {
  /** Owners in the order of their turns, each with those that wait, first come first. Never an empty list. */
  const turns = new Map<string, E[]>()
  const inside = new Set<E>()
  const placed = new Set<E>()
  let waiting = 0
  let weight = 0

  const insidePerOwner = bounds.insidePerOwner ?? Infinity

  /** The owner with the fewest places: slow work of one must not take them all. Of several, whose turn it is. */
  const nextOwner = (): string | undefined => {
    const places = countByOwner(placed)
    const ins = countByOwner(inside)
    let next: string | undefined
    for (const owner of turns.keys()) {
      if ((ins.get(owner) ?? 0) >= insidePerOwner) continue
      if (next === undefined || (places.get(owner) ?? 0) < (places.get(next) ?? 0)) next = owner
    }
    return next
  }

  const takeNext = (): E | undefined => {
    const owner = nextOwner()
    const own = owner === undefined ? undefined : turns.get(owner)
    if (owner === undefined || own === undefined) return undefined
    const entry = own.shift()
    // To the back of the turns, or out of them.
    turns.delete(owner)
    if (own.length > 0) turns.set(owner, own)
    waiting -= 1
    return entry
  }

  const isFull = (owner: string): boolean =>
    waiting >= bounds.inAll || (turns.get(owner)?.length ?? 0) >= bounds.perOwner

  return {
    isFull,

    join(entry) {
      if (isFull(entry.owner)) return false
      const own = turns.get(entry.owner) ?? []
      turns.set(entry.owner, own)
      own.push(entry)
      waiting += 1
      return true
    },

    admit(room) {
      const admitted: E[] = []
      while (placed.size < room.places && weight <= room.weight) {
        const entry = takeNext()
        if (!entry) break
        inside.add(entry)
        placed.add(entry)
        weight += entry.weight
        admitted.push(entry)
      }
      return admitted
    },

    releasePlace: (entry) => void placed.delete(entry),

    leave(entry) {
      placed.delete(entry)
      if (inside.delete(entry)) weight -= entry.weight
      const own = turns.get(entry.owner)
      const position = own?.indexOf(entry) ?? -1
      if (!own || position < 0) return
      own.splice(position, 1)
      waiting -= 1
      if (own.length === 0) turns.delete(entry.owner)
    },

    isInside: (entry) => inside.has(entry),
    atTheirBound() {
      if (insidePerOwner === Infinity) return []
      const ins = countByOwner(inside)
      return [...turns.keys()].filter((owner) => (ins.get(owner) ?? 0) >= insidePerOwner)
    },
    waiting: () => waiting,
    weight: () => weight,
  }
}

function countByOwner(entries: Iterable<Entry>): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { owner } of entries) counts.set(owner, (counts.get(owner) ?? 0) + 1)
  return counts
}
