// What the gateway knows of an endpoint, and what it asks of others. Where a visit goes is decided by this row
// alone, never by anything the visitor or the unit says (reliability I27).

import type { Protocol } from '../contract/endpoint.ts'
import type { StoppedReason, UnitState } from '../contract/states.ts'

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
  /** Connections to an older run must not be used for a newer one (reliability I10). */
  generation: number
}

export type Routes = {
  /**
   * The endpoint a host label names, its secret not yet checked: see private-link.ts. Answers from a cache
   * when the database is away.
   */
  find(label: string): Promise<Route | null>
}

export type WakeOutcome =
  | { kind: 'running'; route: Route }
  /** It will not wake by itself: stopped, over a limit, out of credits, failed. */
  | { kind: 'refused'; reason: 'stopped' | 'exited' | 'cap' | 'credits' | 'gone' | 'no-room' }
  /** Still on its way; ask again after this. */
  | { kind: 'waiting'; retryAfterS: number }

export type Waker = {
  /** Resolves once the unit runs and its port answers, or with why not, within a bound. */
  wake(route: Route): Promise<WakeOutcome>
}

/** What the visits of a unit tell of its use (design 4). */
export type Activity = {
  /** A request is under way until the function it answers is called. */
  begin(unitId: string): () => void
  /** Bytes passed on a connection that stays open. */
  touch(unitId: string): void
}
