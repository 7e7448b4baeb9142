// Meters: what each unit costs, while it does. One of `compute` counts while its machine runs, one of `volume` as
// long as there is one. A meter is opened and closed by the statement that changes the unit's state (unit-state.ts),
// so the two cannot disagree; a frozen machine that wakes opens another, since nobody pays for sleep.
//
// `billed_to` is how far it has been charged. Whoever moves that writes the charges with it: the database does
// (sql/ledger.sql). What an open meter has counted since is added up wherever a cost is asked for.

import { type Generated, type Kysely, type RawBuilder, sql } from 'kysely'
import type { Size } from '../contract/policy.ts'
import type { Database } from './db.ts'

export const meterKinds = ['compute', 'volume'] as const
export type MeterKind = (typeof meterKinds)[number]

export type MetersTable = {
  id: Generated<bigint>
  unit_id: string
  kind: MeterKind
  generation: number
  team_id: string
  /** The credential whose policy it counts against. */
  held_by: string
  size: Size
  price_nano_cents_per_hour: bigint
  counted_before: string
  started_at: Date
  billed_to: Date
  ended_at: Date | null
}

/**
 * What an open meter has counted for certain by `now`: up to the last heartbeat (heartbeats.ts), since nobody knows
 * yet whether what it counts for is still there. So a cost that was shown is never taken back.
 */
export function provenBy(now: Date | RawBuilder<Date>): RawBuilder<Date> {
  return sql<Date>`coalesce((select least(at, ${now}::timestamptz) from heartbeats), ${now}::timestamptz)`
}

/** Nano-cents of the unit in the surrounding query: its last meter of each kind knows what those before it counted. */
export function costNanoCents(now: Date): RawBuilder<bigint> {
  const costs = meterKinds.map(
    (kind) => sql`coalesce((
      select counted(counted_before, price_nano_cents_per_hour,
        ms_between(started_at, coalesce(ended_at, greatest(billed_to, ${provenBy(now)}))))
      from meters where meters.unit_id = units.id and meters.kind = ${kind} order by id desc limit 1
    ), 0)`,
  )
  return sql<bigint>`(${sql.join(costs, sql` + `)})`
}

/** What those before it have counted, for a meter of this unit and kind that is to be opened. */
export function countedBefore(unitId: string, kind: string): RawBuilder<string> {
  return sql<string>`coalesce((
    select counted_before + price_nano_cents_per_hour * ms_between(started_at, ended_at)
    from meters
    where meters.unit_id = ${sql.ref(unitId)} and meters.kind = ${sql.ref(kind)}
    order by meters.id desc limit 1
  ), 0)`
}

/**
 * Of any team: charges what open meters have counted, up to the last heartbeat; of so many, those that wait the
 * longest. Answers how many. Those that somebody else charges just now are left to him.
 */
export async function chargeOpenMeters(
  db: Kysely<Database>,
  { now, limit }: { now: Date; limit: number },
): Promise<number> {
  const result = await db
    .with('proven', (query) => query.selectNoFrom(provenBy(now).as('at')))
    .with('waiting', (query) =>
      query
        .selectFrom(['meters', 'proven'])
        .select(['meters.id', 'proven.at'])
        .where('ended_at', 'is', null)
        .whereRef('billed_to', '<', 'proven.at')
        .orderBy('billed_to')
        .limit(limit)
        .forUpdate('meters')
        .skipLocked(),
    )
    .updateTable('meters')
    .from('waiting')
    .set((set) => ({ billed_to: set.ref('waiting.at') }))
    .whereRef('meters.id', '=', 'waiting.id')
    .executeTakeFirst()
  return Number(result.numUpdatedRows)
}
