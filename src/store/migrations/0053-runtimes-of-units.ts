// Which program runs a unit, as its host said at its newest start.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table units add column runtime text`.execute(db)
}
