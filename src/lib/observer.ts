// What is worth counting, told where it happens and handed in like the clock and the log: whoever tells knows nothing of
// how it is counted (src/metrics/). Nothing told names a team, a unit or a path that somebody sent.

/** How a unit came to run: thawed, with the memory of a run before, or anew; or it was on its way elsewhere. */
export type Tier = 'frozen' | 'memory' | 'cold' | 'none'

export type Observer = {
  /** A unit has arrived where it was on its way to, or has not; `ms` from when it set out. */
  wayEnded(way: {
    way: string
    isolation: 'gvisor' | 'runc'
    tier: Tier
    outcome: 'arrived' | 'failed'
    ms: number
  }): void
  /** `route` is its template; null for what is none of ours. A stream is answered when it has ended. */
  callAnswered(call: { method: string; route: string | null; status: number; ms: number }): void
  roundEnded(round: { loop: string; outcome: 'done' | 'failed' }): void
  teamRecounted(recount: { differences: number }): void
}

export const unobserved: Observer = {
  wayEnded: () => {},
  callAnswered: () => {},
  roundEnded: () => {},
  teamRecounted: () => {},
}
