// Every change of a unit's state has a number. State and generation alone can come again: a unit that slept and
// woke in between looks as it did, and whoever read it before that must not change it by what they saw.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table units add column revision bigint not null default 1`.execute(db)
}
