// Resolves names to units, from the database. A result is read again after a quarter of a second, so that a retired
// or moved name stops working within half a second; look-ups are batched, however many visits there are. If the
// database is down, the gateway keeps using its last known routes: running units stay reachable.

import { batched } from '../../lib/concurrency/batch.ts'
import type { Clock } from '../../lib/clock.ts'
import { completesWithin } from '../../lib/concurrency/completes-within.ts'
import type { Route, Routes } from '../route.ts'

const FRESH_MS = 250
/** A database that does not answer in this time counts as unavailable, if an earlier result is known. */
const PATIENCE_MS = 400
/** Above this number the least recently used ones are dropped. */
const MAX_KNOWN = 10_000

type Named = Route & { name: string }
/** `askedMs`: when the query was sent. */
type Known = { route: Route; askedMs: number }

export function createEndpointRoutes({
  findAll,
  clock,
}: {
  /** Returns the live endpoints of these names. */
  findAll: (names: string[]) => Promise<Named[]>
  clock: Clock
}): Routes {
  const known = new Map<string, Known>()
  const asking = new Map<string, Promise<Route | null>>()
  let isAway = false
  let triedMs = -Infinity

  const findOne = batched(async (names: string[]): Promise<{ route: Route | null; askedMs: number }[]> => {
    const askedMs = clock.monotonicMs()
    triedMs = askedMs
    const found = new Map((await findAll(names)).map(({ name, ...route }) => [name, route]))
    return names.map((name) => ({ route: found.get(name) ?? null, askedMs }))
  })

  async function ask(name: string): Promise<Route | null> {
    try {
      const { route, askedMs } = await findOne(name)
      isAway = false
      // Moves it to the end of the order of use.
      known.delete(name)
      if (route) known.set(name, { route, askedMs })
      if (known.size > MAX_KNOWN) known.delete(known.keys().next().value ?? '')
      return route
    } catch (error) {
      isAway = true
      throw error
    } finally {
      asking.delete(name)
    }
  }

  /** One query per name at a time, shared by all callers. */
  function askOnce(name: string): Promise<Route | null> {
    const underWay = asking.get(name) ?? ask(name)
    asking.set(name, underWay)
    return underWay
  }

  return {
    async find(name) {
      const last = known.get(name)
      if (!last) return await askOnce(name)
      const nowMs = clock.monotonicMs()
      const ageMs = nowMs - last.askedMs
      if (ageMs < FRESH_MS) {
        // Refreshed ahead of time, so that no visit of a busy unit waits.
        if (ageMs >= FRESH_MS / 2) void askOnce(name).catch(() => {})
        return last.route
      }
      if (isAway && nowMs - triedMs < FRESH_MS) return last.route
      const answer = askOnce(name)
      if (isAway) {
        answer.catch(() => {})
        return last.route
      }
      const isAnswered = await completesWithin(clock, PATIENCE_MS, answer).catch(() => false)
      if (isAnswered) return await answer
      isAway = true
      return last.route
    },
  }
}
