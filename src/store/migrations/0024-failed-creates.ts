// A unit that could not be created is kept for an hour to be read, and gives up its name and that of the stack
// created for it.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    drop index units_name;
    create unique index units_name on units (stack_id, name)
      where state not in ('error', 'destroying', 'destroyed');
    alter table stacks add column made_by text;
  `.execute(db)
}
