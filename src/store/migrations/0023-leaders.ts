// Who leads: of all servers that were ever started on this database, the one with the highest epoch
// (decisions/leadership.md).

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table leaders (
      id text primary key,
      epoch integer not null,
      -- Null once it has ended of its own accord.
      holder text,
      renewed_at timestamptz not null
    );
  `.execute(db)
}
