// Runs of units: the time each was running and the price pinned to it. What a unit has cost is derived from
// them and kept nowhere else (design 8). A run is opened and closed by the statement that changes the
// unit's state (unit-state.ts), so the two cannot disagree. A frozen machine that wakes opens another run
// of the same generation: nobody pays for sleep.

import { type Generated, type RawBuilder, sql } from 'kysely'

export type RunsTable = {
  id: Generated<bigint>
  unit_id: string
  generation: number
  team_id: string
  /** The credential whose policy the run counts against. */
  held_by: string
  size: string
  price_nano_cents_per_hour: bigint
  started_at: Date
  ended_at: Date | null
}

/**
 * Nano-cents of all runs of the unit in the surrounding query. Milliseconds times price are summed exactly
 * and divided once, so a thousand short runs cost what one long run does. A clock that was set back makes
 * no run negative.
 */
export function costNanoCents(now: Date): RawBuilder<bigint> {
  return sql<bigint>`(
    select coalesce(trunc(sum(
      price_nano_cents_per_hour::numeric
      * greatest(0, round(extract(epoch from coalesce(ended_at, ${now}) - started_at) * 1000))
    ) / 3600000), 0)::bigint
    from runs where runs.unit_id = units.id
  )`
}
