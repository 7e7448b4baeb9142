// Where units are reached from outside. A row is one name of one endpoint; a name is never given again, so rows
// outlive their units and teams.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table endpoints (
      id text primary key,
      unit_id text not null,
      team_id text not null,
      port integer not null check (port between 1 and 65535),
      protocol text not null check (protocol in ('http', 'postgres', 'mysql', 'redis', 'mongodb', 'amqp',
        'bolt', 'grpc')),
      mode text not null check (mode in ('public', 'private')),
      name text not null unique,
      secret_hash bytea,
      sealed_secret bytea,
      created_at timestamptz not null,
      retired_at timestamptz,
      check ((mode = 'private') = (secret_hash is not null)),
      check ((secret_hash is null) = (sealed_secret is null))
    );
    -- One URL and one TCP endpoint a unit (spec 2.1).
    create unique index endpoints_url on endpoints (unit_id) where retired_at is null and protocol = 'http';
    create unique index endpoints_tcp on endpoints (unit_id) where retired_at is null and protocol <> 'http';

    -- The gateway finds where a visit goes, and whether it may. Secrets it sees as hashes alone.
    do $$ begin
      if exists (select from pg_roles where rolname = 'berth_gateway') then
        grant select (id, unit_id, port, protocol, name, secret_hash, retired_at) on endpoints to berth_gateway;
        grant select (stopped_reason) on units to berth_gateway;
      end if;
    end $$;
  `.execute(db)
}
