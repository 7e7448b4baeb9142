// The instances of Berth that have started on this database (decisions/backup.md).

import type { Kysely } from 'kysely'
import type { Database } from './schema.ts'

export async function hasMet(db: Kysely<Database>, { instanceId }: { instanceId: string }): Promise<boolean> {
  const row = await db.selectFrom('instances').select('id').where('id', '=', instanceId).executeTakeFirst()
  return row !== undefined
}

/** Idempotent. */
export async function meetInstance(
  db: Kysely<Database>,
  { instanceId }: { instanceId: string },
): Promise<void> {
  await db
    .insertInto('instances')
    .values({ id: instanceId })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}
