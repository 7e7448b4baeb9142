// A visit may come to the gateway of any host, which hands it over to the one that has the unit (decisions/gateway.md): so
// the gateway of the server's host sees which that is.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    do $$ begin
      if exists (select from pg_roles where rolname = 'berth_gateway') then
        grant select (host_id) on units to berth_gateway;
      end if;
    end $$
  `.execute(db)
}
