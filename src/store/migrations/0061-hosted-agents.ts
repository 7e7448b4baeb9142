// Environments of vendors whose hosted agents work in units here, and what is known of their sessions. Both credentials, the
// vendor's and that of the key, are sealed.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table hosted_environments (
      id text primary key,
      team_id text not null references teams,
      vendor text not null,
      environment text not null,
      credential_id text not null references credentials,
      sealed_key bytea not null,
      sealed_token bytea not null,
      plan jsonb not null,
      is_on boolean not null,
      version int not null,
      state text not null,
      note text,
      noted_at timestamptz,
      created_by text,
      created_at timestamptz not null,
      unique (team_id, vendor, environment)
    )
  `.execute(db)
  await sql`
    create table hosted_sessions (
      environment_id text not null references hosted_environments on delete cascade,
      session text not null,
      unit_id text,
      state text not null,
      note text,
      turns int not null,
      began_at timestamptz not null,
      changed_at timestamptz not null,
      primary key (environment_id, session)
    )
  `.execute(db)
  await sql`create index hosted_sessions_newest on hosted_sessions (environment_id, changed_at)`.execute(db)
}
