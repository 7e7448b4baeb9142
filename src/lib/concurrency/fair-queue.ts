// Decides which waiting entry is admitted next. Owners take turns, so that one with hundreds of entries does not
// delay one with a few; entries of one owner are admitted in order. Pure: it knows neither the time nor the work
// (lib/concurrency/admission-queue.ts does).
//
// Invariants: no more entries have a place than there are places. No entry is admitted while the weight inside
// exceeds the capacity, or while its owner has its maximum inside. Every waiting entry is admitted once those before
// it have given up their places.

export type Entry = { readonly owner: string; readonly weight: number }

export type Capacity = {
  /** How many entries may have a place at once. */
  places: number
  /** The weight inside up to which one more is admitted. Below zero none is. */
  weight: number
}

/** The most that may wait, per owner and in total, and optionally the most of one owner that may be inside. */
export type QueueBounds = { perOwner: number; inAll: number; insidePerOwner?: number }

export type FairQueue<E extends Entry> = {
  /** Whether too many wait already, of this owner or in total. */
  isFull(owner: string): boolean
  /** Returns false if the queue is full. */
  join(entry: E): boolean
  /** Returns the entries admitted now, in order. Each has a place from then on. */
  admit(room: Capacity): E[]
  /** The entry stays inside with its weight, and gives its place to another. */
  releasePlace(entry: E): void
  /** Removes the entry, whether it waits or is inside. */
  leave(entry: E): void
  isInside(entry: E): boolean
  /** Owners whose next entry only waits for another entry of theirs. */
  atTheirBound(): string[]
  /** How many entries wait. */
  waiting(): number
  /** The weight of the entries inside. */
  weight(): number
}

export function createFairQueue<E extends Entry>(bounds: QueueBounds): FairQueue<E> {
  /** Owners in the order of their turns, each with its waiting entries in order. Never an empty list. */
  const turns = new Map<string, E[]>()
  const inside = new Set<E>()
  const placed = new Set<E>()
  let waiting = 0
  let weight = 0

  const insidePerOwner = bounds.insidePerOwner ?? Infinity

  /**
   * Returns the owner with the fewest places, so that slow work of one owner cannot take them all; of several, the
   * one whose turn it is.
   */
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
    // Moves the owner to the end of the turns, or removes it.
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
