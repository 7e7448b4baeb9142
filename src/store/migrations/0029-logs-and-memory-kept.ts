// What units printed whose create came to nothing: their machines are gone, and their owners want to know why
// (decisions/starts.md). Sealed: people print credentials. And what became of the memory of units that sleep without a
// machine.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table kept_logs (
      unit_id text primary key references units on delete cascade,
      team_id text not null references teams,
      kept_at timestamptz not null,
      sealed bytea not null
    );
    create index on kept_logs (team_id, kept_at);

    alter table units add column memory_outcome text;
  `.execute(db)
}
