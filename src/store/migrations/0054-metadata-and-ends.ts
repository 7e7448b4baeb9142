// Labels of units, and how long a unit lives however much it is used.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table units
      add column metadata jsonb not null default '{}',
      add column time_to_live text,
      add column at_end text not null default 'destroy',
      add column ends_at timestamptz;
    create index units_ends_at on units (ends_at) where ends_at is not null;
  `.execute(db)
}
