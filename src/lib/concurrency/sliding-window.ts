// Counts what each key did in the last `windowMs`, exactly at every instant: a window that restarts each minute would
// allow twice the limit around its edge. Time is monotonic, so a jump of the wall clock has no effect.

export type SlidingWindow = {
  /** Returns the milliseconds until the key may do it once more; 0 if it may now. */
  waitMs(key: string, nowMs: number): number
  record(key: string, nowMs: number): void
}

/** Above this number of keys, the one idle longest is dropped. */
const MAX_KEYS = 10_000

/** The newest `limit` times of a key, as a ring buffer. `next` is the index of the oldest one in a full ring. */
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
      // Deleting and setting an entry moves it to the end, so the map is in order of last use.
      timesOf.delete(key)
      timesOf.set(key, times)
      const [quietest] = timesOf.keys()
      if (timesOf.size > MAX_KEYS && quietest !== undefined) timesOf.delete(quietest)
    },
  }
}
