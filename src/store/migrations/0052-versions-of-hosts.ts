// Which version of Berth a host runs, as its engine last said.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table hosts add column version text`.execute(db)
}
