// What sleep needs: its two tiers, how far a unit has come on its way, stacks that sleep together, and more
// than one billed run of one generation.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table units
      add column frozen boolean not null default false,
      add column progress jsonb,
      add column sleeps_together boolean not null default false;
    create index units_frozen on units (changed_at) where state = 'sleeping' and frozen;

    alter table stacks add column sleep text;

    alter table runs drop constraint runs_pkey;
    alter table runs add column id bigint generated always as identity primary key;
    create index runs_unit on runs (unit_id);
    -- Whatever else goes wrong, nothing is billed twice at once.
    create unique index runs_open on runs (unit_id) where ended_at is null;

    -- When the service last knew its machines to be alive: what is found dead after an outage is billed up
    -- to here (design 8), and idle time is counted from here on.
    create table heartbeats (id text primary key, at timestamptz not null);
  `.execute(db)
}
