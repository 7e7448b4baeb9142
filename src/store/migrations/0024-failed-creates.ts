// What could not be made is kept for an hour to be read, and holds no name meanwhile: neither its own nor that of the
// stack that was made for it.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    drop index units_name;
    create unique index units_name on units (stack_id, name)
      where state not in ('error', 'destroying', 'destroyed');
    alter table stacks add column made_by text;
  `.execute(db)
}
