// Leader election: one server leads. Its connections carry its epoch in their name, and a new leader ends the
// connections of earlier epochs before it does anything. A connection is named first and then checks that its epoch
// is the newest, so either it is found and ended, or it finds that it is too late. No statement has to check
// anything, and what an ended connection had in progress is either committed by then or never will be.

import { type Kysely, sql } from 'kysely'
import type pg from 'pg'
import type { Database } from './schema.ts'

export type Leadership = {
  epoch: number
  holder: string | null
  /** By the database's clock, which all servers share. */
  silentMs: number
  /** Changes with each renewal of the lead. */
  renewedAt: Date
}

const ID = 'server'
const NAME = 'berth server '

/** Another server has taken the lead. */
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

/**
 * Returns the new epoch, higher than `above` and all earlier ones; null if another server has taken the lead since
 * `found` was read.
 */
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

/** Tells them to end, which takes a moment. Returns true once no connection of an earlier epoch is left. */
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

/** Names a new connection after its epoch. Throws LeadershipLost if that is no longer the newest. */
export async function joinLeadership(
  client: pg.ClientBase,
  { epoch, onLost }: { epoch: number; onLost: () => void },
): Promise<void> {
  // The name must be set before the second statement reads the epoch: see the top of this file.
  await client.query(`set application_name to '${NAME}${epoch}'`)
  const { rows } = await client.query<{ epoch: number }>('select epoch from leaders where id = $1', [ID])
  if (rows[0]?.epoch === epoch) return
  onLost()
  throw new LeadershipLost('another server leads')
}

/** Returns false if another server has the lead. */
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

/** The server that leads ends, and leads again above this epoch. */
export async function raiseEpoch(db: Kysely<Database>, above: number): Promise<void> {
  await db
    .updateTable('leaders')
    .set({ epoch: above })
    .where('id', '=', ID)
    .where('epoch', '<', above)
    .execute()
}

/** The next server then need not wait. */
export async function releaseLeadership(db: Kysely<Database>, { epoch }: { epoch: number }): Promise<void> {
  await db
    .updateTable('leaders')
    .set({ holder: null })
    .where('id', '=', ID)
    .where('epoch', '=', epoch)
    .execute()
}
