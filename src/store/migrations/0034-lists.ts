// Who made a unit, and an index over the units that are there: a team may have destroyed a hundred times as many.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    -- Null for units from before.
    alter table units add column created_by jsonb;
    create index units_present on units (team_id, id desc) where state <> 'destroyed';
  `.execute(db)
}
