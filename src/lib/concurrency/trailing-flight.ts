// A trailing coalescer for reads. The caller gets the outcome of work that began after its call, and so sees what it
// has just written. Callers that arrive during a run share the next one: a thousand at once cost two runs.

export type TrailingFlight<T> = {
  /** `work` must have a timeout, because later callers wait for it. */
  run(key: string, work: () => Promise<T>): Promise<T>
}

type Flight<T> = { running: Promise<T>; next: Promise<T> | null }

export function createTrailingFlight<T>(): TrailingFlight<T> {
  const inFlight = new Map<string, Flight<T>>()

  const begin = (key: string, work: () => Promise<T>): Promise<T> => {
    const flight: Flight<T> = { running: work(), next: null }
    inFlight.set(key, flight)
    const end = () => {
      if (inFlight.get(key) === flight && flight.next === null) inFlight.delete(key)
    }
    void flight.running.then(end, end)
    return flight.running
  }

  return {
    run(key, work) {
      const flight = inFlight.get(key)
      if (!flight) return begin(key, work)
      const beginNext = () => begin(key, work)
      flight.next ??= flight.running.then(beginNext, beginNext)
      return flight.next
    },
  }
}
