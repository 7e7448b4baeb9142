// The events that metrics count. Code reports an event where it happens, to an observer that it is given like the clock
// and the log; src/metrics/ decides how it is counted. No report names a team, a unit or a path that a caller sent.

/** How a unit came to run: thawed, with restored memory, or by a cold start; `none`: the operation does not lead to `running`. */
export type Tier = 'frozen' | 'memory' | 'cold' | 'none'

export type Observer = {
  /** An operation on a unit has succeeded or failed; `ms` since the unit entered the transitional state. */
  operationEnded(operation: {
    operation: string
    isolation: 'gvisor' | 'runc'
    tier: Tier
    result: 'success' | 'failure'
    ms: number
  }): void
  /** `route` is its template; null for what is none of ours. A stream is answered when it has ended. */
  callAnswered(call: { method: string; route: string | null; status: number; ms: number }): void
  jobEnded(run: { job: string; result: 'success' | 'failure' }): void
  ledgerVerified(verification: { differences: number }): void
}

export const unobserved: Observer = {
  operationEnded: () => {},
  callAnswered: () => {},
  jobEnded: () => {},
  ledgerVerified: () => {},
}
