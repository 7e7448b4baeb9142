// Recomputes the ledger from its sources (reliability B11), independently of the code that charges.

import { type Kysely, sql } from 'kysely'
import type { Database } from './schema.ts'

/** A sum that differs from its parts, in nano-cents or milliseconds. */
export type Difference = { what: string; of: string; recorded: bigint; recomputed: bigint }

/**
 * For one team at one moment: checks each unit's charges against the times and prices of its meters, each meter's
 * charges against its time, each day's sums against its charges, and the balance against everything.
 */
export async function verifyLedgerOfTeam(db: Kysely<Database>, teamId: string): Promise<Difference[]> {
  const { rows } = await sql<Difference>`
    with metered as (
      select *, round(extract(epoch from billed_to - started_at) * 1000)::numeric as counted_ms
      from meters where team_id = ${teamId}
    ), charged as (
      select * from charges where team_id = ${teamId}
    ), differences as (
      select 'charges of a unit' as what, unit_id || ' ' || kind as of,
        coalesce(sum(charged.nano_cents), 0) as recorded, metered.recomputed
      from (
        select unit_id, kind, div(sum(price_nano_cents_per_hour * counted_ms), 3600000) as recomputed
        from metered group by unit_id, kind
      ) as metered
      left join charged using (unit_id, kind)
      group by unit_id, kind, recomputed
      union all
      select 'time of a meter', metered.unit_id || ' ' || metered.id,
        coalesce(sum(to_ms - from_ms), 0), counted_ms
      from metered left join charged on charged.meter_id = metered.id
      group by metered.unit_id, metered.id, counted_ms
      union all
      select 'charges of a day', day || ' ' || credential_id || ' ' || kind || ' ' || size,
        coalesce(used.nano_cents, 0), coalesce(charged.nano_cents, 0)
      from (select * from usage_days where team_id = ${teamId}) as used
      full join (
        select day, credential_id, kind, size, sum(nano_cents) as nano_cents
        from charged group by day, credential_id, kind, size
      ) as charged using (day, credential_id, kind, size)
      union all
      select 'balance', ${teamId}::text,
        coalesce((select nano_cents from balances where team_id = ${teamId}), 0),
        (select coalesce(sum(nano_cents), 0) from credits where team_id = ${teamId})
          - (select coalesce(sum(nano_cents), 0) from charged)
    )
    select what, of, recorded::bigint, recomputed::bigint from differences where recorded <> recomputed
  `.execute(db)
  return rows
}

/** Returns the teams verified longest ago, before `before`. */
export async function listTeamsToVerify(
  db: Kysely<Database>,
  { before, limit }: { before: Date; limit: number },
): Promise<string[]> {
  const rows = await db
    .selectFrom('balances')
    .select('team_id')
    .where((where) => where.or([where('recounted_at', 'is', null), where('recounted_at', '<=', before)]))
    .orderBy('recounted_at', (order) => order.asc().nullsFirst())
    .limit(limit)
    .execute()
  return rows.map((row) => row.team_id)
}

export async function saveLedgerVerified(
  db: Kysely<Database>,
  { teamId, at }: { teamId: string; at: Date },
): Promise<void> {
  await db.updateTable('balances').set({ recounted_at: at }).where('team_id', '=', teamId).execute()
}
