// The usage of a team by day in UTC: charges, and what open meters have counted since.

import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { Size } from '../contract/policy.ts'
import type { UsagePart } from '../contract/usage.ts'
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

/** What one unit, stack or agent cost on a day. */
export type CostOfPart = { day: string; id: string; name: string; nanoCents: bigint }

/** From that day on. */
export async function listCostsOfParts(
  db: Kysely<Database>,
  by: UsagePart,
  { teamId, firstDay, now }: { teamId: string; firstDay: string; now: Date },
): Promise<CostOfPart[]> {
  const { rows } = await sql<CostOfPart>`
    select day::text, id, name, sum(nano_cents)::bigint as "nanoCents"
    from (${by === 'agent' ? costsOfAgents(teamId, now) : costsOfUnits(by, { teamId, firstDay, now })}) as cost
    where day >= ${firstDay}::date
    group by day, id, name
  `.execute(db)
  return rows
}

/** A person has a session now and then: all of them are the person. */
function costsOfAgents(teamId: string, now: Date): RawBuilder<unknown> {
  return sql`
    select used.day, used.nano_cents, coalesce(users.id, used.credential_id) as id,
      coalesce(credentials.name, users.email, used.credential_id) as name
    from (
      select day, credential_id, nano_cents from usage_days where team_id = ${teamId}
      union all
      select charge.day, held_by, charge.nano_cents from meters ${uncharged(now)}
      where team_id = ${teamId} and ended_at is null
    ) as used
    left join credentials on credentials.id = used.credential_id
    left join sessions on sessions.id = used.credential_id
    left join users on users.id = sessions.user_id
  `
}

/**
 * From the meters, of which there is one a run: charges are made every minute. Both come to the same, since each is the
 * difference of what a meter has counted by two moments.
 */
function costsOfUnits(
  by: 'stack' | 'unit',
  { teamId, firstDay, now }: { teamId: string; firstDay: string; now: Date },
): RawBuilder<unknown> {
  const midnight = sql`(${firstDay}::date::timestamp at time zone 'UTC')`
  const shown =
    by === 'stack' ? sql`stacks.id, stacks.name` : sql`units.id, concat(stacks.name, '/', units.name) as name`
  return sql`
    select charge.day, charge.nano_cents, ${shown}
    from meters
    join units on units.id = meters.unit_id
    join stacks on stacks.id = units.stack_id
    cross join lateral charges_between(
      meters.started_at, meters.counted_before, meters.price_nano_cents_per_hour,
      ms_between(meters.started_at, ${midnight}),
      ms_between(meters.started_at, coalesce(meters.ended_at, greatest(meters.billed_to, ${provenBy(now)})))
    ) as charge
    where meters.team_id = ${teamId} and (meters.ended_at is null or meters.ended_at >= ${midnight})
  `
}
