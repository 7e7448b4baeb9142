// What the gateway knows of an endpoint, and what it asks of others. Where a visit goes is decided by this row
// alone, never by anything the visitor or the unit says (reliability I27).

import type { Protocol } from '../../contract/endpoint.ts'
import type { StoppedReason, UnitState } from '../../contract/states.ts'
import type { VisitRefusal } from '../../contract/visit.ts'

export type Route = {
  endpointId: string
  unitId: string
  protocol: Protocol
  /** SHA-256 of the secret that a private label ends with; null for a public endpoint. */
  secretHash: Buffer | null
  /** Where within the unit. */
  port: number
  /** The unit's own for its whole life; null while it is being made. */
  address: string | null
  state: UnitState
  stoppedReason: StoppedReason | null
  /** Its machine stands still, and goes on where it was (design 3). */
  frozen: boolean
  /** Connections to an older run must not be used for a newer one (reliability I10). */
  generation: number
}

export type Routes = {
  /**
   * The endpoint of that name (contract/endpoint-label.ts), its secret not yet checked: see private-link.ts.
   * What it tells was so less than half a second ago, or, while the database is away, when it was last asked.
   * Rejects when nobody knows.
   */
  find(name: string): Promise<Route | null>
}

export type WakeOutcome =
  | { kind: 'running'; route: Route }
  /** It will not wake by itself: stopped, over a limit, out of credits; or it was to, and `failed`. */
  | { kind: 'refused'; reason: VisitRefusal }
  /** Still on its way; ask again after this. */
  | { kind: 'waiting'; retryAfterS: number }

/** Every visit asks `awake`, and where that does not know, `wake`, also for a unit that seems to run. */
export type Waker = {
  /**
   * The route with the run to go to, where it is known that the unit cannot fall asleep for a while. Null: find
   * out by `wake`; what the route says may be older than the unit's sleep.
   */
  findLease(route: Route): Route | null
  /**
   * Resolves once the unit runs, and cannot fall asleep for a while, with the run to go to; or with why it does
   * not, within a bound. Whether its port answers yet shows when somebody connects.
   */
  wake(route: Route): Promise<WakeOutcome>
  /** The run could not be reached: the next visit asks anew whether it is there. */
  invalidateLease(unitId: string): void
}

/** What the visits of a unit tell of its use (design 4). */
export type Activity = {
  /** A request is under way until the function it answers is called. */
  begin(unitId: string, endpointId: string): () => void
  /** Bytes passed on a connection that stays open. */
  touch(unitId: string): void
}
