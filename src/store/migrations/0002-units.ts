// Stacks, units, their runs, and what of them is kept encrypted.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table stacks (
      id text primary key,
      team_id text not null references teams on delete cascade,
      name text not null,
      created_at timestamptz not null,
      unique (team_id, name)
    );

    create table units (
      id text primary key,
      team_id text not null references teams on delete cascade,
      stack_id text not null references stacks,
      name text not null,
      image text not null,
      size text not null check (size in ('nano', 'small', 'medium', 'large')),
      spec jsonb not null,
      isolation text not null,
      network_group integer not null,
      address text,
      held_by text not null,
      state text not null check (state in ('creating', 'running', 'stopping', 'stopped', 'sleeping',
        'starting', 'destroying', 'destroyed', 'error')),
      generation integer not null,
      stopped_reason text check (stopped_reason in ('idle', 'cap', 'credits', 'user', 'provider', 'exited')),
      sleep text not null,
      sleeps_at timestamptz,
      last_used_at timestamptz,
      created_at timestamptz not null,
      changed_at timestamptz not null,
      started_at timestamptz,
      last_exit jsonb,
      error text,
      destroys_at timestamptz,
      forked_from text
    );
    create unique index units_name on units (stack_id, name) where state <> 'destroyed';
    create unique index units_address on units (address) where address is not null;
    create index units_team on units (team_id, id desc);
    create index units_stack on units (stack_id);
    create index units_live on units (held_by) where state in ('creating', 'starting', 'running', 'stopping');
    create index units_passing on units (changed_at)
      where state in ('creating', 'starting', 'stopping', 'destroying');
    create index units_sleeps_at on units (sleeps_at) where state = 'running';
    create index units_destroys_at on units (destroys_at) where state = 'error';

    create table runs (
      unit_id text not null references units on delete cascade,
      generation integer not null,
      team_id text not null,
      held_by text not null,
      size text not null,
      price_nano_cents_per_hour bigint not null,
      started_at timestamptz not null,
      ended_at timestamptz,
      primary key (unit_id, generation)
    );

    create table secrets (
      owner_id text not null,
      name text not null,
      sealed bytea not null,
      primary key (owner_id, name)
    );

    create table boot_files (
      unit_id text not null references units on delete cascade,
      path text not null,
      sealed bytea not null,
      primary key (unit_id, path)
    );

    -- The gateway answers names and finds who asks; of a unit it sees no more than that.
    do $$ begin
      if exists (select from pg_roles where rolname = 'berth_gateway') then
        grant select (id, team_id, name) on stacks to berth_gateway;
        grant select (id, team_id, stack_id, name, address, state, generation) on units to berth_gateway;
      end if;
    end $$;
  `.execute(db)
}
