// OAuth: the programs that people connect, their descriptions, requests for consent, codes and tokens. A family is
// the set of tokens from one sign-in; they all end together.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table oauth_clients (
      id text primary key,
      -- Registered here, or described by a document at the URL that is its id.
      kind text not null check (kind in ('registered', 'document')),
      name text,
      uri text,
      icon text,
      redirect_uris text[] not null,
      created_at timestamptz not null,
      used_at timestamptz not null,
      -- Of a document: until when it need not be fetched again.
      fresh_until timestamptz
    );
    create index oauth_clients_used on oauth_clients (used_at);

    create table oauth_requests (
      prefix text primary key,
      hash bytea not null check (length(hash) = 32),
      client_id text not null references oauth_clients on delete cascade,
      redirect_uri text not null,
      state text,
      code_challenge text not null,
      -- The session that opened it first; nobody else's may decide.
      session_id text references sessions on delete cascade,
      expires_at timestamptz not null
    );
    create index oauth_requests_client on oauth_requests (client_id);
    create index oauth_requests_session on oauth_requests (session_id);
    create index oauth_requests_expires on oauth_requests (expires_at);

    alter table credentials
      alter column prefix drop not null,
      alter column hash drop not null,
      add column client jsonb,
      add column client_key text,
      add column connected_at timestamptz,
      add constraint credentials_secret check ((kind = 'key') = (prefix is not null) and (kind = 'key') = (hash is not null));
    create unique index credentials_client on credentials (team_id, created_by, client_key)
      where client_key is not null and revoked_at is null;

    create table oauth_families (
      id text primary key,
      credential_id text not null references credentials on delete cascade,
      client_id text not null,
      -- What its tokens follow from.
      sealed_key bytea not null,
      generation integer not null default 0,
      created_at timestamptz not null,
      used_at timestamptz not null,
      refresh_until timestamptz not null,
      revoked_at timestamptz
    );
    create index oauth_families_credential on oauth_families (credential_id);
    create index oauth_families_client on oauth_families (client_id);
    create index oauth_families_refresh on oauth_families (refresh_until);

    create table oauth_codes (
      prefix text primary key,
      hash bytea not null check (length(hash) = 32),
      client_id text not null,
      redirect_uri text not null,
      code_challenge text not null,
      credential_id text not null references credentials on delete cascade,
      expires_at timestamptz not null,
      used_at timestamptz,
      family_id text references oauth_families on delete set null
    );
    create index oauth_codes_credential on oauth_codes (credential_id);
    create index oauth_codes_family on oauth_codes (family_id);
    create index oauth_codes_expires on oauth_codes (expires_at);

    create table oauth_tokens (
      prefix text primary key,
      hash bytea not null check (length(hash) = 32),
      family_id text not null references oauth_families on delete cascade,
      kind text not null check (kind in ('access', 'refresh')),
      generation integer not null,
      -- Of access tokens; a refresh token ends with its family.
      expires_at timestamptz,
      used_at timestamptz,
      retired_at timestamptz
    );
    create index oauth_tokens_family on oauth_tokens (family_id, generation);
    create index oauth_tokens_expires on oauth_tokens (expires_at);
  `.execute(db)
}
