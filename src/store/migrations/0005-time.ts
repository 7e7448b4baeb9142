// What of the time the service goes by outlives its processes: wall time less monotonic time, and the boot
// of the host that monotonic time is counted in. Nothing has written heartbeats before.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table heartbeats
      add column boot text not null,
      add column offset_ms double precision not null;
  `.execute(db)
}
