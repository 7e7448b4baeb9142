// Counts of limited actions. The actor of a row is a hash.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table allowances (
      name text not null,
      of bytea not null,
      spent timestamptz[] not null,
      last_spent_at timestamptz not null,
      primary key (name, of)
    );
    create index allowances_last_spent on allowances (last_spent_at);
    create index sign_in_links_expires on sign_in_links (expires_at);
  `.execute(db)
}
