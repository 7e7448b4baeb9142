// The meters of a team that still counted on a day: what each of its units has cost is added up from them.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create index meters_ended_of_team on meters (team_id, ended_at) where ended_at is not null`.execute(
    db,
  )
}
