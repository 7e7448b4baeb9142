// What credentials have spent today (in UTC) and what teams have left, at a given time: charges, and what open meters
// have counted since.

import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { Size } from '../contract/policy.ts'
import type { StoppedReason } from '../contract/states.ts'
import type { Database } from './schema.ts'
import { type ActiveUnits, countLive, diskOf } from './active-units.ts'
import { provenBy } from './meters.ts'
import { type Given, prepare } from './prepared.ts'
import { selectUnits, toRecord, type UnitRecord } from './unit-record.ts'

export type Moment = {
  now: Date
  /** The price of a unit of each size that is about to run. */
  sizePrices: Record<Size, bigint>
}

/** With the active units of the credential, as in findActiveUnits (active-units.ts). */
export type Spending = {
  paysAsItGoes: boolean
  balanceNanoCents: bigint
  /** Per hour, of everything that costs the team now or is about to. */
  teamPerHour: bigint
  /** Null for a session, which has no policy. */
  capCents: bigint | null
  spentToday: bigint
  credentialPerHour: bigint
} & ActiveUnits

/** For one credential and its team. Hold the team's lock to decide by it. */
export async function findSpending(
  db: Kysely<Database>,
  { teamId, credentialId, ...moment }: Moment & Account,
): Promise<Spending> {
  const [found] = await spendingOf(db, { teamId, credentialId, ...valuesOf(moment) })
  if (!found) throw new Error('there is no such team')
  return found
}

/**
 * All that decides whether more units may be made: the same, and the disk promised to the team's units. Hold the team's
 * lock.
 */
export async function findAdmission(
  db: Kysely<Database>,
  { teamId, credentialId, sizeDiskGb, ...moment }: Moment & Account & { sizeDiskGb: Record<Size, number> },
): Promise<Spending & { diskGb: number }> {
  const values = { teamId, credentialId, ...valuesOf(moment), sizeDiskGb: JSON.stringify(sizeDiskGb) }
  const [found] = await admissionOf(db, values)
  if (!found) throw new Error('there is no such team')
  return found
}

type Account = { teamId: string; credentialId: string }
type MomentValues = ReturnType<typeof valuesOf>

const spendingOf = prepare<Spending, Account & MomentValues>(
  'spending',
  ['teamId', 'credentialId', 'now', 'midnight', 'prices'],
  (given, db) => ofAccount(given, db, sql``),
)

const admissionOf = prepare<Spending & { diskGb: number }, Account & MomentValues & { sizeDiskGb: string }>(
  'admission',
  ['teamId', 'credentialId', 'now', 'midnight', 'prices', 'sizeDiskGb'],
  ({ sizeDiskGb, ...given }, db) =>
    ofAccount(given, db, sql`, (${diskOf(db, given.teamId, sizeDiskGb)})::int as "diskGb"`),
)

function ofAccount<Row>(
  { teamId, credentialId, ...moment }: Given<Account & MomentValues>,
  db: Kysely<Database>,
  more: RawBuilder<unknown>,
): RawBuilder<Row> {
  return sql`
    with spending as (${spending(moment, sql`team_id = ${teamId}`)})
    select
      teams.pays_as_it_goes as "paysAsItGoes",
      (coalesce(balances.nano_cents, 0) - of_team.uncharged)::bigint as "balanceNanoCents",
      of_team.per_hour as "teamPerHour",
      ${cap(sql`credentials`)} as "capCents",
      (of_credential.today + ${chargedToday(moment, sql`${credentialId}::text`)})::bigint as "spentToday",
      of_credential.per_hour as "credentialPerHour",
      credentials.policy, credentials.revoked_at as "revokedAt", teams.plan, teams.egress as "teamEgress",
      (${countLive(db, credentialId)})::int as live
      ${more}
    from teams
    left join credentials on credentials.id = ${credentialId} and credentials.team_id = teams.id
    left join balances on balances.team_id = teams.id
    cross join (${sumsOf(sql`true`)}) as of_team
    cross join (${sumsOf(sql`held_by = ${credentialId}`)}) as of_credential
    where teams.id = ${teamId}
  `
}

/** The limit that a unit exceeds, or that stopped it. */
export type LimitReason = Extract<StoppedReason, 'cap' | 'credits'>

type Limited = { unit: UnitRecord; reason: LimitReason }

/**
 * Running units that must be stopped because of a limit, of one team or of any. Credits must last for `reservedMs`;
 * above `maxConcurrentUnits` the newest units are stopped.
 */
export async function listUnitsBeyondLimits(
  db: Kysely<Database>,
  { reservedMs, teamId, ...moment }: Moment & { reservedMs: number; teamId?: string },
): Promise<Limited[]> {
  const given = givenOf(moment)
  const which = teamId === undefined ? sql`true` : sql`team_id = ${teamId}`
  const rows = await selectUnits(db, moment.now)
    .innerJoin(
      sql<{ id: string; reason: LimitReason }>`(
        with spending as materialized (${spending(given, which)})
        select units.id, case when broke.team_id is null then 'cap' else 'credits' end as reason
        from units
        left join (${teamsWithout(reservedMs)}) as broke on broke.team_id = units.team_id
        left join (${credentialsBeyond(given, reservedMs)}) as capped on capped.held_by = units.held_by
        left join (${unitsTooMany()}) as crowd on crowd.id = units.id
        where units.state = 'running'
          and (broke.team_id is not null or capped.held_by is not null or crowd.id is not null)
      )`.as<'beyond'>(sql`beyond`),
      'beyond.id',
      'units.id',
    )
    .select('beyond.reason')
    .execute()
  return rows.map((row) => ({ unit: toRecord(row), reason: row.reason }))
}

/**
 * Of any team: units stopped by a limit that allows all of them to run again. If one of many were released as soon as
 * it could run a little longer, it would be stopped and released for ever.
 */
export async function listUnitsWithinLimits(
  db: Kysely<Database>,
  { reservedMs, ...moment }: Moment & { reservedMs: number },
): Promise<UnitRecord[]> {
  const given = givenOf(moment)
  const rows = await selectUnits(db, moment.now)
    .innerJoin(
      sql<{ id: string }>`(
        with spending as materialized (${spending(
          given,
          sql`team_id in (
          select team_id from units where stopped_reason in ('cap', 'credits')
        )`,
        )}),
        of_team as (
          select team_id, sum(uncharged) as uncharged, sum(per_hour) as per_hour from spending group by team_id
        ),
        of_credential as (
          select held_by, sum(today) as today, sum(per_hour) as per_hour, sum(live) as live
          from spending group by held_by
        )
        select units.id
        from (
          select *, sum((${given.prices}::jsonb ->> size)::bigint) over (
            partition by stopped_reason, case stopped_reason when 'cap' then held_by else team_id end
          ) as together
          from units where state in ('stopping', 'stopped') and stopped_reason in ('cap', 'credits')
        ) as units
        join teams on teams.id = units.team_id
        left join balances on balances.team_id = units.team_id
        left join credentials on credentials.id = units.held_by
        left join of_team on of_team.team_id = units.team_id
        left join of_credential on of_credential.held_by = units.held_by
        where units.state = 'stopped' and case units.stopped_reason
          when 'credits' then teams.pays_as_it_goes
            or coalesce(balances.nano_cents, 0) - coalesce(of_team.uncharged, 0)
              >= ${reserve(sql`coalesce(of_team.per_hour, 0) + together`, reservedMs)}
          when 'cap' then credentials.id is null or (
            ${chargedToday(given, sql`units.held_by`)} + coalesce(of_credential.today, 0)
              + ${reserve(sql`coalesce(of_credential.per_hour, 0) + together`, reservedMs)}
              <= ${cap(sql`credentials`)} * 1000000000
            and coalesce(of_credential.live, 0) < (credentials.policy ->> 'maxConcurrentUnits')::bigint
          )
          else false end
      )`.as<'within'>(sql`within`),
      'within.id',
      'units.id',
    )
    .execute()
  return rows.map(toRecord)
}

/**
 * One row for each open meter, and one for each unit that is about to open one. Not rounded like charges, which takes
 * ten times as long: a limit may be off by a nano-cent.
 */
function counting(moment: Given<MomentValues>, which: RawBuilder<unknown>): RawBuilder<unknown> {
  const { now, midnight, prices } = moment
  const countedSince = (from: RawBuilder<unknown>) =>
    sql`price_nano_cents_per_hour * date_part('epoch', greatest(until, ${from}) - ${from}) / 3600`
  return sql`
    select team_id, held_by, price_nano_cents_per_hour as per_hour, (kind = 'compute')::int as live,
      ${countedSince(sql`billed_to`)} as uncharged,
      ${countedSince(sql`greatest(billed_to, ${midnight}::timestamptz)`)} as today
    from meters cross join lateral (select ${provenBy(now)} as until) as proven
    where ended_at is null and ${which}
    union all
    select team_id, held_by, (${prices}::jsonb ->> size)::bigint, 1, 0, 0
    from units
    where (state = 'starting' or (state = 'creating' and stopped_reason is null)) and ${which}
  `
}

/**
 * The sums of each credential in its team, computed once before anything is compared: there are as many open meters
 * as running units, and this query runs every few seconds.
 */
function spending(moment: Given<MomentValues>, which: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`
    select team_id, held_by, sum(per_hour) as per_hour, sum(live) as live, sum(uncharged) as uncharged,
      sum(today) as today
    from (${counting(moment, which)}) as counting
    group by team_id, held_by
  `
}

function sumsOf(which: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`
    select coalesce(sum(uncharged), 0) as uncharged, coalesce(sum(today), 0) as today,
      coalesce(sum(per_hour), 0)::bigint as per_hour
    from spending where ${which}
  `
}

function teamsWithout(reservedMs: number): RawBuilder<unknown> {
  return sql`
    select spending.team_id
    from spending
    join teams on teams.id = spending.team_id and not teams.pays_as_it_goes
    left join balances on balances.team_id = spending.team_id
    group by spending.team_id, balances.nano_cents
    having coalesce(balances.nano_cents, 0) - sum(uncharged) < ${reserve(sql`sum(per_hour)`, reservedMs)}
  `
}

function credentialsBeyond(moment: Given<MomentValues>, reservedMs: number): RawBuilder<unknown> {
  return sql`
    select spending.held_by
    from spending join credentials on credentials.id = spending.held_by
    where ${chargedToday(moment, sql`spending.held_by`)} + today + ${reserve(sql`per_hour`, reservedMs)}
      > ${cap(sql`credentials`)} * 1000000000
  `
}

/** Also counts units that are not running yet; they are stopped once they run. */
function unitsTooMany(): RawBuilder<unknown> {
  return sql`
    select ranked.id
    from (
      select units.id, row_number() over (partition by units.held_by order by units.id) as place,
        (credentials.policy ->> 'maxConcurrentUnits')::bigint as most
      from spending
      join credentials on credentials.id = spending.held_by
        and spending.live > (credentials.policy ->> 'maxConcurrentUnits')::bigint
      join units on units.held_by = spending.held_by
        and (state in ('starting', 'running') or (state = 'creating' and stopped_reason is null))
    ) as ranked
    where ranked.place > ranked.most
  `
}

function chargedToday(
  { midnight }: Given<MomentValues>,
  credentialId: RawBuilder<unknown>,
): RawBuilder<unknown> {
  return sql`(
    select coalesce(sum(nano_cents), 0) from usage_days
    where usage_days.credential_id = ${credentialId} and usage_days.day = (${midnight}::timestamptz at time zone 'UTC')::date
  )`
}

function cap(credentials: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`(${credentials}.policy ->> 'dailySpendCapCents')::bigint`
}

function reserve(perHour: RawBuilder<unknown>, reservedMs: number): RawBuilder<unknown> {
  return sql`(${perHour}) * ${reservedMs}::numeric / 3600000`
}

function valuesOf({ now, sizePrices }: Moment) {
  const perSize = Object.entries(sizePrices).map(([size, price]) => [size, `${price}`])
  return {
    now,
    midnight: new Date(new Date(now).setUTCHours(0, 0, 0, 0)),
    prices: JSON.stringify(Object.fromEntries(perSize)),
  }
}

function givenOf(moment: Moment): Given<MomentValues> {
  const { now, midnight, prices } = valuesOf(moment)
  return { now: sql.val(now), midnight: sql.val(midnight), prices: sql.val(prices) }
}
