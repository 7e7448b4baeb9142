// One server leads. Its connections carry its epoch in their name, and whoever takes the lead ends those of earlier
// epochs before it does anything: a connection is named first and then looks whether its epoch is the newest, so
// either it is found and ended, or it finds that it is late. Nothing is asked of Postgres at any single statement,
// and what was under way on a connection that is ended has either been committed by then or never will be.

import { type Kysely, sql } from 'kysely'
import type pg from 'pg'
import type { Database } from './db.ts'

export type LeadersTable = { id: string; epoch: number; holder: string | null; renewed_at: Date }

export type Leadership = {
  epoch: number
  holder: string | null
  /** By the database's own clock, which all who ask share. */
  silentMs: number
  /** Another moment each time that the lead is renewed. */
  renewedAt: Date
}

const ID = 'server'
const NAME = 'berth server '

/** Another server has been given the lead since. */
export class LeadershipLost extends Error {}

export async function findLeader(db: Kysely<Database>): Promise<Leadership | null> {
  const row = await db
    .selectFrom('leaders')
    .select([
      'epoch',
      'holder',
      'renewed_at as renewedAt',
      sql<number>`(extract(epoch from clock_timestamp() - renewed_at) * 1000)::float8`.as('silentMs'),
    ])
    .where('id', '=', ID)
    .executeTakeFirst()
  return row ?? null
}

/** The new epoch, higher than `above` and any before; null when somebody else took the lead since it was `found`. */
export async function takeLeadership(
  db: Kysely<Database>,
  { found, above, holder }: { found: Leadership | null; above: number; holder: string },
): Promise<number | null> {
  const epoch = Math.max(found?.epoch ?? 0, above) + 1
  const values = { epoch, holder, renewed_at: sql<Date>`clock_timestamp()` }
  const row = found
    ? await db
        .updateTable('leaders')
        .set(values)
        .where('id', '=', ID)
        .where('epoch', '=', found.epoch)
        .returning('epoch')
        .executeTakeFirst()
    : await db
        .insertInto('leaders')
        .values({ id: ID, ...values })
        .onConflict((conflict) => conflict.doNothing())
        .returning('epoch')
        .executeTakeFirst()
  return row?.epoch ?? null
}

/** Tells them to end, which takes them a moment: true once no connection of an earlier epoch is left. */
export async function endEarlierLeaders(
  db: Kysely<Database>,
  { epoch }: { epoch: number },
): Promise<boolean> {
  const { rows } = await sql`
    select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and application_name ~ ${`^${NAME}[0-9]{1,9}$`}
      and substr(application_name, ${NAME.length + 1})::integer < ${epoch}
  `.execute(db)
  return rows.length === 0
}

/** Names a new connection after the epoch it works for. Throws `LeadLost` when that is the newest no more. */
export async function joinLeadership(
  client: pg.ClientBase,
  { epoch, onLost }: { epoch: number; onLost: () => void },
): Promise<void> {
  // The name is there before the second statement looks: see the top of this file.
  await client.query(`set application_name to '${NAME}${epoch}'`)
  const { rows } = await client.query<{ epoch: number }>('select epoch from leaders where id = $1', [ID])
  if (rows[0]?.epoch === epoch) return
  onLost()
  throw new LeadershipLost('another server leads')
}

/** False: it is another's by now. */
export async function renewLeadership(db: Kysely<Database>, { epoch }: { epoch: number }): Promise<boolean> {
  const renewed = await db
    .updateTable('leaders')
    .set({ renewed_at: sql<Date>`clock_timestamp()` })
    .where('id', '=', ID)
    .where('epoch', '=', epoch)
    .returning('epoch')
    .execute()
  return renewed.length === 1
}

/** Whoever comes next need not wait. */
export async function releaseLeadership(db: Kysely<Database>, { epoch }: { epoch: number }): Promise<void> {
  await db
    .updateTable('leaders')
    .set({ holder: null })
    .where('id', '=', ID)
    .where('epoch', '=', epoch)
    .execute()
}
