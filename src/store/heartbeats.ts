// The service's heartbeat: when it was last known to be whole, and by which time it goes.

import type { Kysely } from 'kysely'
import type { Database } from './db.ts'

export type HeartbeatsTable = { id: string; at: Date; boot: string; offset_ms: number }

export type Heartbeat = {
  at: Date
  /** The run of the host that monotonic time was counted in. */
  boot: string
  /** Wall time less monotonic time. */
  offsetMs: number
}

const ID = 'service'

export async function findHeartbeat(db: Kysely<Database>): Promise<Heartbeat | null> {
  return (await selectHeartbeat(db).executeTakeFirst()) ?? null
}

/** Whoever else wants to change it waits for the transaction to end. */
export async function lockHeartbeat(db: Kysely<Database>): Promise<Heartbeat | null> {
  return (await selectHeartbeat(db).forUpdate().executeTakeFirst()) ?? null
}

export async function saveHeartbeat(db: Kysely<Database>, { at, boot, offsetMs }: Heartbeat): Promise<void> {
  const values = { at, boot, offset_ms: offsetMs }
  await db
    .insertInto('heartbeats')
    .values({ id: ID, ...values })
    .onConflict((conflict) => conflict.column('id').doUpdateSet(values))
    .execute()
}

function selectHeartbeat(db: Kysely<Database>) {
  return db.selectFrom('heartbeats').select(['at', 'boot', 'offset_ms as offsetMs']).where('id', '=', ID)
}
