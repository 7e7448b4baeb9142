// Counts of limited actions: one row per action and actor, with the times it was done.

import { type Kysely, sql } from 'kysely'
import type { Database } from './schema.ts'

type Allowance = { name: string; of: Buffer; since: Date }

/** Counts one action; the row's lock makes the limit exact. Returns false if it was done too often since then. */
export async function spendOnce(
  db: Kysely<Database>,
  { name, of, since, now, times }: Allowance & { now: Date; times: number },
): Promise<boolean> {
  const result = await sql`
    insert into allowances as allowance (name, of, spent, last_spent_at)
    values (${name}, ${of}, array[${now}::timestamptz], ${now})
    on conflict (name, of) do update set
      spent = array(select at from unnest(allowance.spent) at where at > ${since} order by at) || ${now}::timestamptz,
      last_spent_at = ${now}
    where (select count(*) from unnest(allowance.spent) at where at > ${since}) < ${times}
  `.execute(db)
  return result.numAffectedRows === 1n
}

/** Returns the first time that still counts. */
export async function findFirstSpent(
  db: Kysely<Database>,
  { name, of, since }: Allowance,
): Promise<Date | null> {
  const { rows } = await sql<{ first: Date | null }>`
    select min(at) as first from allowances, unnest(spent) at
    where name = ${name} and of = ${of} and at > ${since}
  `.execute(db)
  return rows[0]?.first ?? null
}

export async function deleteAllowances(
  db: Kysely<Database>,
  { spentBefore }: { spentBefore: Date },
): Promise<void> {
  await db.deleteFrom('allowances').where('last_spent_at', '<', spentBefore).execute()
}
