// The ledger's credits: incoming money and corrections. Rows are only added, once per source.

import type { Kysely } from 'kysely'
import { sql } from 'kysely'
import type { Database } from './schema.ts'
import type { CreditKind } from './tables/credits.ts'

export type NewCredit = {
  id: string
  teamId: string
  kind: CreditKind
  nanoCents: bigint
  source: string
  note: string | null
  createdAt: Date
}

/** Returns false if the source already has a credit. */
export async function insertCredit(db: Kysely<Database>, credit: NewCredit): Promise<boolean> {
  const result = await db
    .insertInto('credits')
    .values({
      id: credit.id,
      team_id: credit.teamId,
      kind: credit.kind,
      nano_cents: credit.nanoCents,
      source: credit.source,
      note: credit.note,
      created_at: credit.createdAt,
    })
    .onConflict((conflict) => conflict.column('source').doNothing())
    .executeTakeFirst()
  return result.numInsertedOrUpdatedRows === 1n
}

/** Returns the nano-cents that teams have left, as of the last heartbeat. */
export async function findBalances(
  db: Kysely<Database>,
  teamIds: readonly string[],
): Promise<Map<string, bigint>> {
  const { rows } = await sql<{ id: string; balance: bigint }>`
    select team.id, (
      coalesce((select nano_cents from balances where team_id = team.id), 0)
      - coalesce((
        select sum(counted(counted_before, price_nano_cents_per_hour,
            ms_between(started_at, greatest(billed_to, (select at from heartbeats where heartbeats.id = meters.host_id))))
          - counted(counted_before, price_nano_cents_per_hour, ms_between(started_at, billed_to)))
        from meters where team_id = team.id and ended_at is null
      ), 0)
    )::bigint as balance
    from unnest(${[...teamIds]}::text[]) as team(id)
  `.execute(db)
  return new Map(rows.map(({ id, balance }) => [id, balance]))
}
