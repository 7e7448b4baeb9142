// What a team's units are promised of the disks is added up with each create; its units of former days are many.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create index units_there on units (team_id) where state not in ('error', 'destroyed')`.execute(db)
}
