// Meters: they count the cost of each unit. A `compute` meter counts while its machine runs, a `volume` meter as long
// as the volume exists. The statement that changes the unit's state also opens and closes meters (unit-state.ts), so
// the two cannot disagree; a frozen machine that wakes opens a new meter, since sleep is free.
//
// `billed_to` is the time up to which a meter has been charged. Moving it also writes the charges, in the database
// (sql/ledger.sql). Reads of a cost add what open meters have counted since.

import { type Kysely, type RawBuilder, sql } from 'kysely'
import { SERVICE } from './heartbeats.ts'
import type { Database } from './schema.ts'
import type { MeterKind } from './tables/meters.ts'

export type { MeterKind, MetersTable } from './tables/meters.ts'

export const meterKinds = ['compute', 'volume'] as const satisfies readonly MeterKind[]

/**
 * The time up to which the open meter of the surrounding query certainly counts: the last heartbeat of its host
 * (heartbeats.ts), because it is unknown whether its machine still exists after that. So a cost that was shown is never
 * reduced.
 */
export function provenBy(now: Date | RawBuilder<Date>): RawBuilder<Date> {
  return sql<Date>`coalesce(
    (select least(heartbeats.at, ${now}::timestamptz) from heartbeats where heartbeats.id = meters.host_id),
    ${now}::timestamptz
  )`
}

/**
 * The nano-cents of the unit in the surrounding query: its last meter of each kind contains the sum of those before
 * it.
 */
export function costNanoCents(now: Date | RawBuilder<Date>): RawBuilder<bigint> {
  const costs = meterKinds.map(
    (kind) => sql`coalesce((
      select counted(counted_before, price_nano_cents_per_hour,
        ms_between(started_at, coalesce(ended_at, greatest(billed_to, ${provenBy(now)}))))
      from meters where meters.unit_id = units.id and meters.kind = ${kind} order by id desc limit 1
    ), 0)`,
  )
  return sql<bigint>`(${sql.join(costs, sql` + `)})`
}

/** The same at a moment that is proven and may be past: it never changes any more. */
export function costNanoCentsAt(at: Date): RawBuilder<bigint> {
  const costs = meterKinds.map(
    (kind) => sql`coalesce((
      select counted(counted_before, price_nano_cents_per_hour,
        ms_between(started_at, least(ended_at, ${at}::timestamptz)))
      from meters
      where meters.unit_id = units.id and meters.kind = ${kind} and started_at <= ${at}::timestamptz
      order by id desc limit 1
    ), 0)`,
  )
  return sql<bigint>`(${sql.join(costs, sql` + `)})`
}

/** The last moment up to which open meters of all hosts certainly count. */
export async function readProven(db: Kysely<Database>, now: Date): Promise<Date> {
  const oldest = sql<Date>`least(coalesce(min(at), ${now}::timestamptz), ${now}::timestamptz)`
  const beats = db.selectFrom('heartbeats').where('id', '<>', SERVICE)
  return (await beats.select(oldest.as('at')).executeTakeFirstOrThrow()).at
}

/** The sum of earlier meters, for a meter of this unit and kind that is about to be opened. */
export function countedBefore(unitId: string, kind: string): RawBuilder<string> {
  return sql<string>`coalesce((
    select counted_before + price_nano_cents_per_hour * ms_between(started_at, ended_at)
    from meters
    where meters.unit_id = ${sql.ref(unitId)} and meters.kind = ${sql.ref(kind)}
    order by meters.id desc limit 1
  ), 0)`
}

/**
 * Of any team: charges what open meters have counted, up to the last heartbeat, starting with those charged longest
 * ago. Returns how many. Skips meters that another process is charging.
 */
export async function chargeOpenMeters(
  db: Kysely<Database>,
  { now, limit }: { now: Date; limit: number },
): Promise<number> {
  const result = await db
    .with('waiting', (query) =>
      query
        .selectFrom('meters')
        .select(['meters.id', provenBy(now).as('at')])
        .where('ended_at', 'is', null)
        .where('billed_to', '<', provenBy(now))
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
