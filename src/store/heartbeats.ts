// The heartbeat of the service: when it was last known to be healthy, and the time it uses.

import type { Kysely } from 'kysely'
import type { Database } from './schema.ts'

export type Heartbeat = {
  at: Date
  /** The boot of the host in which monotonic time is counted. */
  boot: string
  /** Wall time minus monotonic time. */
  offsetMs: number
}

const ID = 'service'

export async function findHeartbeat(db: Kysely<Database>): Promise<Heartbeat | null> {
  return (await selectHeartbeat(db).executeTakeFirst()) ?? null
}

/** Other transactions that change it wait for this one to end. */
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
