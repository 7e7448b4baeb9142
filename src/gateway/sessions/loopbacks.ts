// Servers in sandboxes that listen for the sandbox alone, as many development servers do. Clients of E2B expect a visit to reach
// them too. Whether there is one the server is asked, once the port itself has refused the visit.

import type { Clock } from '../../lib/clock.ts'
import { createSingleFlight } from '../../lib/concurrency/single-flight.ts'
import type { Route } from '../route.ts'

type Run = Pick<Route, 'unitId' | 'generation' | 'port'>

export type Loopbacks = {
  /** The port of the unit that was found to lead there. */
  known: (run: Run) => number | null
  /** The same, after a question to the unit if need be; null if nothing listens there, or the server cannot be asked. */
  find: (run: Run) => Promise<number | null>
  /** It leads nowhere any more. */
  forget: (run: Run) => void
}

/** A unit is looked into at most so often for a port that is closed. */
const CLOSED_FOR_MS = 1000
/** Above this, the one that was found first is looked for again. */
const MAX_KNOWN = 2000
const ASKED_FOR_MS = 15_000

/** `ask`: the server, about the port of a unit. */
export function createLoopbacks(
  ask: (unitId: string, port: number) => Promise<number | null>,
  clock: Clock,
): Loopbacks {
  const open = new Map<string, number>()
  const closed = new Map<string, number>()
  const asking = createSingleFlight<number | null>(clock)
  const keyOf = ({ unitId, generation, port }: Run) => `${unitId} ${generation} ${port}`
  const keep = <T>(kept: Map<string, T>, key: string, value: T) => {
    kept.delete(key)
    kept.set(key, value)
    const [oldest] = kept.keys()
    if (kept.size > MAX_KNOWN && oldest !== undefined) kept.delete(oldest)
  }
  const look = async (run: Run): Promise<number | null> => {
    const found = await ask(run.unitId, run.port).catch(() => null)
    if (found === null) keep(closed, keyOf(run), clock.monotonicMs() + CLOSED_FOR_MS)
    else keep(open, keyOf(run), found)
    return found
  }
  return {
    known: (run) => open.get(keyOf(run)) ?? null,
    find: async (run) => {
      const key = keyOf(run)
      if (clock.monotonicMs() < (closed.get(key) ?? 0)) return null
      return await asking.run(key, ASKED_FOR_MS, async () => await look(run))
    },
    forget: (run) => void open.delete(keyOf(run)),
  }
}
