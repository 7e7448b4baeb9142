// A unit's environment is shown in the order in which it was declared: jsonb sorts names, json keeps them as they came.
// What was stored before stays sorted.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table units alter column spec type json using spec::json`.execute(db)
}
