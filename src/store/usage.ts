// The usage of a team by day in UTC: charges, and what open meters have counted since.

import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { Size } from '../contract/policy.ts'
import type { Database } from './schema.ts'
import { type MeterKind, provenBy } from './meters.ts'

/** `day` is formatted as 2027-03-01. */
export type UsageOfDay = { day: string; kind: MeterKind; size: Size; ms: bigint; nanoCents: bigint }

/** What a credential has spent on the day of `now`, in UTC. */
export function spentOnDay(credentialId: RawBuilder<unknown>, now: Date): RawBuilder<bigint> {
  const day = sql`(${now}::timestamptz at time zone 'UTC')::date`
  return sql<bigint>`(
    coalesce((
      select sum(nano_cents) from usage_days where credential_id = ${credentialId} and day = ${day}
    ), 0) + coalesce((
      select sum(charge.nano_cents) from meters ${uncharged(now)}
      where held_by = ${credentialId} and ended_at is null and charge.day = ${day}
    ), 0)
  )::bigint`
}

/** For a query of meters: what an open one has counted since it was charged, by day. */
function uncharged(now: Date): RawBuilder<unknown> {
  return sql`
    cross join lateral charges_between(
      started_at, counted_before, price_nano_cents_per_hour,
      ms_between(started_at, billed_to), ms_between(started_at, greatest(billed_to, ${provenBy(now)}))
    ) as charge`
}

/** From that day on. */
export async function listUsage(
  db: Kysely<Database>,
  { teamId, firstDay, now }: { teamId: string; firstDay: string; now: Date },
): Promise<UsageOfDay[]> {
  const { rows } = await sql<UsageOfDay>`
    select day::text, kind, size, sum(ms)::bigint as ms, sum(nano_cents)::bigint as "nanoCents"
    from (
      select day, kind, size, ms, nano_cents from usage_days where team_id = ${teamId}
      union all
      select charge.day, kind, size, charge.to_ms - charge.from_ms, charge.nano_cents
      from meters ${uncharged(now)}
      where team_id = ${teamId} and ended_at is null
    ) as used
    where day >= ${firstDay}::date
    group by day, kind, size
  `.execute(db)
  return rows
}
