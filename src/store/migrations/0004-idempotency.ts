// Calls that can be repeated. A row is written by the transaction that makes what the call makes, and lives
// for a day.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table idempotency_keys (
      team_id text not null references teams on delete cascade,
      route text not null,
      key text not null,
      claim text not null,
      request bytea not null,
      kept bytea,
      answer bytea,
      claimed_at timestamptz not null,
      primary key (team_id, route, key)
    );
    create index idempotency_keys_claimed on idempotency_keys (claimed_at);
  `.execute(db)
}
