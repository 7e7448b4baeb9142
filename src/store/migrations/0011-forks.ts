// Forks: units copied together, all or none. The row says how far they have come; the copies are the units that name it.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table forks (
      id text primary key,
      team_id text not null references teams on delete cascade,
      source_id text not null,
      stack_id text not null references stacks,
      made_by text not null,
      skipped jsonb not null,
      progress jsonb,
      created_at timestamptz not null,
      ended_at timestamptz,
      error jsonb
    );
    create index forks_under_way on forks (id) where ended_at is null;

    alter table units
      add column fork_id text references forks,
      add column copied text check (copied in ('memory', 'disk', 'config'));
    create index units_fork on units (fork_id) where fork_id is not null;
  `.execute(db)
}
