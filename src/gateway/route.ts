// The types of routing: an endpoint's route, and the gateway's interfaces to look one up, wake its unit and report
// its use. Only the route's row decides where a visit goes, never what the visitor or the unit sends (reliability
// I27).

import type { VisitRefusal } from '../contract/visit.ts'
import type { EndpointRoute } from '../store/endpoints.ts'

/** The endpoint's name is left out: a route is found by it. */
export type Route = Omit<EndpointRoute, 'name'>

export type Routes = {
  /**
   * Finds the endpoint with that name (contract/endpoint-label.ts); its secret is not checked yet, see
   * private-link.ts. The result is at most half a second old or, if the database is unavailable, the last known one.
   * Rejects if nothing is known.
   */
  find(name: string): Promise<Route | null>
}

export type WakeOutcome =
  | { kind: 'running'; route: Route }
  /** It will not wake: it is stopped, over a limit or out of credits, or its wake `failed`. */
  | { kind: 'refused'; reason: VisitRefusal }
  /** Still waking; ask again after this time. */
  | { kind: 'waiting'; retryAfterS: number }

/** A visit first calls `findLease` and, if that returns null, `wake`, even for a unit that seems to run. */
export type Waker = {
  /**
   * Returns the route to the run if it is certain that the unit stays awake for a while. Null: call `wake`, because
   * the route may be older than the unit's sleep.
   */
  findLease(route: Route): Route | null
  /**
   * Resolves, within a bounded time, with the run once the unit is awake and stays so for a while, or with the reason
   * why not. Whether its port accepts connections only a connection shows.
   */
  wake(route: Route): Promise<WakeOutcome>
  /** The run could not be reached: the next visit asks again whether it exists. */
  invalidateLease(unitId: string): void
}

/** Reports the use of units by visits (design 4). */
export type Activity = {
  /** A request is in progress until the returned function is called. */
  begin(unitId: string, endpointId: string): () => void
  /** Bytes passed on a connection that stays open. */
  touch(unitId: string): void
}
