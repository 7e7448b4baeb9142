// A public TCP endpoint may have a port of the gateway to itself, for clients that send no server name. A private one
// may not: its name contains a secret, and a port is known to everyone.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table endpoints add column gateway_port integer check (gateway_port between 1024 and 65535);
    alter table endpoints add check (gateway_port is null or (mode = 'public' and protocol <> 'http'));
    create unique index endpoints_gateway_port on endpoints (gateway_port) where retired_at is null;
    -- Which port was unused the longest.
    create index endpoints_gateway_port_before on endpoints (gateway_port) where gateway_port is not null;
    do $$ begin
      if exists (select from pg_roles where rolname = 'berth_gateway') then
        grant select (gateway_port) on endpoints to berth_gateway;
      end if;
    end $$;
  `.execute(db)
}
