// Secrets of teams, and secrets of units whose value never reaches the unit (decisions/brokered-secrets.md).

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  // Both null: an ordinary secret, whose value is in the unit's environment.
  await sql`alter table secrets add column hosts text[], add column placeholder text`.execute(db)
  await sql`
    create table team_secrets (
      team_id text not null references teams,
      name text not null,
      hosts text[] not null,
      placeholder text not null,
      sealed bytea not null,
      created_at timestamptz not null,
      updated_at timestamptz not null,
      primary key (team_id, name)
    )
  `.execute(db)
}
