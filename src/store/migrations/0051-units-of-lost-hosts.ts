// Whether the operator has said that the units of a host that was given up are to be destroyed.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table hosts add column destroys_units boolean not null default false`.execute(db)
}
