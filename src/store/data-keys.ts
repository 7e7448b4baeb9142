// The key that encrypts secrets, sealed by the key of a file, of which the database only knows the id.

import { type Kysely, sql } from 'kysely'
import type { Database } from './schema.ts'

export type SealedDataKey = { sealed: Buffer; sealedBy: string }

const ID = 'data'

export async function findDataKey(db: Kysely<Database>): Promise<SealedDataKey | null> {
  const row = await db
    .selectFrom('data_keys')
    .select(['sealed', 'sealed_by as sealedBy'])
    .where('id', '=', ID)
    .executeTakeFirst()
  return row ?? null
}

/** Does nothing if there is one already. */
export async function insertDataKey(
  db: Kysely<Database>,
  { sealed, sealedBy }: SealedDataKey,
): Promise<void> {
  await db
    .insertInto('data_keys')
    .values({ id: ID, sealed, sealed_by: sealedBy })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

export async function updateDataKey(
  db: Kysely<Database>,
  { sealed, sealedBy }: SealedDataKey,
): Promise<void> {
  await db.updateTable('data_keys').set({ sealed, sealed_by: sealedBy }).where('id', '=', ID).execute()
}

/** Whether secrets were encrypted before there was a data key, with the key of the file itself. */
export async function holdsSealed(db: Kysely<Database>): Promise<boolean> {
  const query = sql<{ holds: boolean }>`
    select exists (select from secrets) or exists (select from boot_files) or exists (select from idempotency_keys)
      or exists (select from kept_logs)
      or exists (select from endpoints where sealed_secret is not null) as holds
  `
  return (await query.execute(db)).rows[0]?.holds ?? false
}

/** An arbitrary lock id, which serializes rotations. */
const ROTATION_LOCK = 0x6b657973

/** Runs the work with the rotation lock, on one connection; the lock is released if the process dies. */
export async function whileRotating<T>(
  db: Kysely<Database>,
  work: (db: Kysely<Database>) => Promise<T>,
): Promise<T> {
  return await db.connection().execute(async (connection) => {
    await sql`select pg_advisory_lock(${ROTATION_LOCK})`.execute(connection)
    try {
      return await work(connection)
    } finally {
      await sql`select pg_advisory_unlock(${ROTATION_LOCK})`.execute(connection)
    }
  })
}
