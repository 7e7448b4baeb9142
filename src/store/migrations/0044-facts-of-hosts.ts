// What is known of a host, as its engine last said (decisions/hosts.md).

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table hosts
      add column boot text,
      -- Isolation classes that it has.
      add column classes jsonb,
      add column cpus integer,
      add column memory_mb integer,
      add column available_mb integer,
      -- By how much its wall clock is ahead of the server's.
      add column clock_offset_ms integer
  `.execute(db)
}
