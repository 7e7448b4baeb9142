// For which methods and paths a brokered secret is (decisions/brokered-secrets.md).

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  // Null: for every request to its hosts.
  await sql`alter table secrets add column methods text[], add column paths text[]`.execute(db)
  await sql`alter table team_secrets add column methods text[], add column paths text[]`.execute(db)
}
