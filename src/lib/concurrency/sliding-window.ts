// How often each key did something within the last `windowMs`. Exact at every instant: a window that
// starts anew each minute would let twice the limit pass around its edge. Time is monotonic, so a jump of
// the wall clock neither frees nor locks anybody out.

export type SlidingWindow = {
  /** Milliseconds until the key may do it once more; 0 when it may now. */
  waitMs(key: string, nowMs: number): number
  record(key: string, nowMs: number): void
}

/** Beyond this many keys the one that was quiet longest is forgotten. */
const MAX_KEYS = 10_000

/** The newest `limit` times of a key, as a ring. `next` is where the oldest of a full ring lies. */
type Times = { ring: number[]; next: number }

export function slidingWindow(limit: number, windowMs: number): SlidingWindow {
  const timesOf = new Map<string, Times>()
  return {
    waitMs: (key, nowMs) => {
      const times = timesOf.get(key)
      if (limit === 0) return windowMs
      if (!times || times.ring.length < limit) return 0
      const oldest = times.ring[times.next] ?? 0
      return Math.max(0, oldest + windowMs - nowMs)
    },
    record: (key, nowMs) => {
      const times = timesOf.get(key) ?? { ring: [], next: 0 }
      times.ring[times.next] = nowMs
      times.next = (times.next + 1) % Math.max(1, limit)
      // Taken out and put back, the map is in order of last use.
      timesOf.delete(key)
      timesOf.set(key, times)
      const [quietest] = timesOf.keys()
      if (timesOf.size > MAX_KEYS && quietest !== undefined) timesOf.delete(quietest)
    },
  }
}
