// What the gateway of a host says of itself (contract/gateway-facts.ts): where the units of this host are visited.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table hosts add column gateway jsonb`.execute(db)
}
