// People, teams, credentials and the audit trail. Tokens are never stored: a prefix to find them by and a
// SHA-256 to compare with (design 7).

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table users (
      id text primary key,
      email text not null,
      name text not null,
      email_verified boolean not null default false,
      admin boolean not null default false,
      created_at timestamptz not null
    );
    create unique index users_email on users (lower(email));

    create table teams (
      id text primary key,
      slug text not null unique,
      name text not null,
      personal boolean not null,
      plan text not null check (plan in ('hobby', 'pro', 'team')),
      region text not null check (region in ('paris', 'virginia', 'singapore')),
      currency text not null check (currency in ('eur', 'usd')),
      pays_as_it_goes boolean not null,
      network_group integer not null unique generated always as identity,
      created_at timestamptz not null
    );

    create table memberships (
      team_id text not null references teams on delete cascade,
      user_id text not null references users on delete cascade,
      role text not null check (role in ('owner', 'admin', 'member')),
      joined_at timestamptz not null,
      primary key (team_id, user_id)
    );
    create index memberships_user on memberships (user_id);

    create table credentials (
      id text primary key,
      team_id text not null references teams on delete cascade,
      kind text not null check (kind in ('key', 'oauth')),
      name text not null,
      prefix text not null unique,
      hash bytea not null check (length(hash) = 32),
      policy jsonb not null,
      created_by text references users on delete set null,
      created_at timestamptz not null,
      last_used_at timestamptz,
      revoked_at timestamptz
    );
    create index credentials_team on credentials (team_id);

    create table sessions (
      id text primary key,
      user_id text not null references users on delete cascade,
      prefix text not null unique,
      hash bytea not null check (length(hash) = 32),
      current_team_id text references teams on delete set null,
      created_at timestamptz not null,
      expires_at timestamptz not null,
      revoked_at timestamptz
    );
    create index sessions_user on sessions (user_id);

    create table sign_in_links (
      prefix text primary key,
      hash bytea not null check (length(hash) = 32),
      email text not null,
      created_at timestamptz not null,
      expires_at timestamptz not null,
      used_at timestamptz
    );

    create table audit (
      id text primary key,
      team_id text not null references teams on delete cascade,
      credential_kind text not null check (credential_kind in ('key', 'oauth', 'session')),
      credential_id text not null,
      credential_name text not null,
      user_id text,
      action text not null,
      target text,
      input jsonb,
      request_id text not null,
      via text not null,
      agent_name text,
      agent_version text,
      user_agent text,
      started_at timestamptz not null,
      duration_ms double precision,
      status integer,
      error_code text,
      cost_delta_nanocents bigint not null default 0
    );
    create index audit_team on audit (team_id, id desc);
  `.execute(db)
}
