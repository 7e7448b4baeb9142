// Stacks that can be deleted. The row stays, since units that are gone can still be read, but the name is free again.
// A stack that was made for a unit that named none goes with its last unit.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table stacks
      add column unnamed boolean not null default false,
      add column deleted_at timestamptz,
      drop constraint stacks_team_id_name_key;
    create unique index stacks_name on stacks (team_id, name) where deleted_at is null;
    create index stacks_team on stacks (team_id, id desc) where deleted_at is null;
  `.execute(db)
}
