// How the ports of a unit are visited by their own names (contract/port-host.ts), which the gateway follows.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table units add column port_rules jsonb`.execute(db)
  await sql`
    do $$ begin
      if exists (select from pg_roles where rolname = 'berth_gateway') then
        grant select (port_rules) on units to berth_gateway;
      end if;
    end $$
  `.execute(db)
}
