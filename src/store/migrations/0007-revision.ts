// Every change of a unit's state increments its revision. State and generation alone can repeat: a unit that slept
// and woke looks as before, and a change based on the earlier read must fail.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table units add column revision bigint not null default 1`.execute(db)
}
