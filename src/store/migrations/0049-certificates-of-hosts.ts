// When the first of a host's certificates ends, as it said last.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table hosts add column certificates_end timestamptz`.execute(db)
}
