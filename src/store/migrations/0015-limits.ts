// What the client that used a credential last said of itself, how much of its rates each has spent lately, and the key
// that secrets are sealed with. Rates are not worth a log of their own: a crash of Postgres forgets them.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table credentials add column user_agent text;

    create unlogged table rate_windows (
      credential_id text primary key,
      spent_at timestamptz not null,
      spent jsonb not null,
      revision bigint not null
    ) with (fillfactor = 50);

    create table data_keys (
      id text primary key,
      sealed bytea not null,
      sealed_by text not null
    );
  `.execute(db)
}
