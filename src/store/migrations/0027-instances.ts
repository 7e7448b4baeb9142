// Which instances of Berth have begun on this database: one that has machines begins on no other (decisions/backup.md).

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table instances (
      id text primary key,
      met_at timestamptz not null default now()
    );
  `.execute(db)
}
