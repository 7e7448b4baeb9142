// Units that one create made together, from a recipe: what becomes of one that cannot be made becomes of all.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table units add column made_with text;
    create index units_made_with on units (made_with) where made_with is not null;
  `.execute(db)
}
