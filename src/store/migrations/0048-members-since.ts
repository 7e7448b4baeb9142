// Since when a host has its name: the certificates of an earlier host of this name are not its own.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table hosts add column member_since timestamptz not null default now()`.execute(db)
}
