// The gateway ends what was open to a run that is over, and keeps what is open to one that stands still.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    do $$ begin
      if exists (select from pg_roles where rolname = 'berth_gateway') then
        grant select (frozen) on units to berth_gateway;
      end if;
    end $$;
  `.execute(db)
}
