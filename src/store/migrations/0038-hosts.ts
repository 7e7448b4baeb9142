// Hosts (decisions/hosts.md). Everything that was there before belongs to one host, which the first server to start takes
// as its own.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table hosts (
      id text primary key,
      name text not null unique,
      -- The instance whose data directory it is; null for one that only its address tells, and before it is known.
      instance text unique,
      -- Where its engine listens; null for the server's own.
      address text,
      region text,
      state text not null check (state in ('joining', 'ready', 'draining', 'lost', 'removed')),
      state_since timestamptz not null default now(),
      -- Beside its state, which it returns to.
      away_since timestamptz,
      reason text,
      -- Counted up when it is given up.
      epoch integer not null default 1
    );
    insert into hosts (id, name, state) values ('host_' || replace(gen_random_uuid()::text, '-', ''), 'first', 'joining');
    insert into heartbeats (id, at, boot, offset_ms)
      select hosts.id, at, heartbeats.boot, offset_ms from heartbeats, hosts;
  `.execute(db)
  const { rows } = await sql<{ id: string }>`select id from hosts`.execute(db)
  const first = sql.lit(rows[0]?.id ?? null)
  // A constant default is stored once, for all rows that are there: no table is rewritten.
  await sql`
    alter table units add column host_id text not null default ${first} references hosts (id);
    alter table units alter column host_id drop default;
    create index units_of_host on units (host_id) where state <> 'destroyed';
    -- No reference, which each start of a run would check: it is that of the unit.
    alter table meters add column host_id text not null default ${first};
    alter table meters alter column host_id drop default;
  `.execute(db)
}
