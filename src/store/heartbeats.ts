// When each part of the service was last known to be well.

import type { Kysely } from 'kysely'
import type { Database } from './db.ts'

export type HeartbeatsTable = { id: string; at: Date }

export async function beat(db: Kysely<Database>, { id, at }: { id: string; at: Date }): Promise<void> {
  await db
    .insertInto('heartbeats')
    .values({ id, at })
    .onConflict((conflict) => conflict.column('id').doUpdateSet({ at }))
    .execute()
}

export async function lastBeat(db: Kysely<Database>, id: string): Promise<Date | null> {
  const row = await db.selectFrom('heartbeats').select('at').where('id', '=', id).executeTakeFirst()
  return row?.at ?? null
}
