// What happened to hosts (decisions/observability.md).

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table host_events (
      id bigint generated always as identity primary key,
      host_id text not null references hosts (id),
      at timestamptz not null,
      -- A state that it came to, or 'away' or 'back'.
      event text not null,
      reason text
    );
    create index on host_events (host_id, id);
  `.execute(db)
}
