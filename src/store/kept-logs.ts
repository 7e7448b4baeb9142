// Logs of units whose machines are gone, encrypted by the caller. Each team keeps the newest ones.

import { type Kysely, sql } from 'kysely'
import type { Database } from './schema.ts'

export type KeptLog = { unitId: string; teamId: string; keptAt: Date; sealed: Buffer }

/** Replaces the unit's stored log; call it in a transaction. Beyond `most`, older logs of the team are deleted. */
export async function insertKeptLog(
  db: Kysely<Database>,
  { unitId, teamId, keptAt, sealed }: KeptLog,
  most: number,
): Promise<void> {
  await db
    .insertInto('kept_logs')
    .values({ unit_id: unitId, team_id: teamId, kept_at: keptAt, sealed })
    .onConflict((conflict) => conflict.column('unit_id').doUpdateSet({ kept_at: keptAt, sealed }))
    .execute()
  // The second of two concurrent calls must see what the first stored.
  await sql`select pg_advisory_xact_lock(hashtext('kept logs of ' || ${teamId}))`.execute(db)
  await sql`
    delete from kept_logs where unit_id in (
      select unit_id from kept_logs where team_id = ${teamId} order by kept_at desc, unit_id desc offset ${most}
    )
  `.execute(db)
}

export async function findKeptLog(
  db: Kysely<Database>,
  { teamId, unitId }: { teamId: string; unitId: string },
): Promise<Buffer | null> {
  const row = await db
    .selectFrom('kept_logs')
    .select('sealed')
    .where('unit_id', '=', unitId)
    .where('team_id', '=', teamId)
    .executeTakeFirst()
  return row?.sealed ?? null
}
