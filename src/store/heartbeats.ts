// Heartbeats: when each host was last known to be healthy, which proves what its machines cost up to then; and one of
// the service, with the time that it uses.

import type { Kysely } from 'kysely'
import type { Database } from './schema.ts'

export type Heartbeat = {
  at: Date
  /** The boot of the server's host in which monotonic time is counted. */
  boot: string
  /** Wall time minus monotonic time. */
  offsetMs: number
}

/** Its `at` is the newest of all hosts. */
export const SERVICE = 'service'

/** The heartbeat of a host, or of the service. */
export async function findHeartbeat(db: Kysely<Database>, id: string): Promise<Heartbeat | null> {
  return (await selectHeartbeats(db).where('id', '=', id).executeTakeFirst()) ?? null
}

/** Other transactions that change heartbeats wait for this one to end. */
export async function lockHeartbeat(db: Kysely<Database>): Promise<Heartbeat | null> {
  return (await selectHeartbeats(db).where('id', '=', SERVICE).forUpdate().executeTakeFirst()) ?? null
}

/** Each of another host, or of the service. */
export async function saveHeartbeats(
  db: Kysely<Database>,
  beats: { id: string; at: Date }[],
  { boot, offsetMs }: Omit<Heartbeat, 'at'>,
): Promise<void> {
  await db
    .insertInto('heartbeats')
    .values(beats.map((beat) => ({ ...beat, boot, offset_ms: offsetMs })))
    .onConflict((conflict) =>
      conflict.column('id').doUpdateSet((set) => ({
        at: set.ref('excluded.at'),
        boot,
        offset_ms: offsetMs,
      })),
    )
    .execute()
}

function selectHeartbeats(db: Kysely<Database>) {
  return db.selectFrom('heartbeats').select(['at', 'boot', 'offset_ms as offsetMs'])
}
