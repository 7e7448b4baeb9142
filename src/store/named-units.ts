// Units of a team by their names, as a person or an agent calls them.

import { type Kysely, sql } from 'kysely'
import type { Database } from './db.ts'
import { selectUnits, toRecord, type UnitRecord } from './unit-record.ts'

const SAME_NAME = 5

/** Of a team, by their name and perhaps that of their stack, newest first; such as are destroyed have none any more. */
export async function findUnitsByName(
  db: Kysely<Database>,
  { teamId, name, stack, now }: { teamId: string; name: string; stack: string | null; now: Date },
): Promise<UnitRecord[]> {
  const rows = await selectUnits(db, now)
    .where('units.team_id', '=', teamId)
    .where('units.name', '=', name)
    .where('units.state', '<>', 'destroyed')
    .$if(stack !== null, (query) =>
      query.where(
        'units.stack_id',
        '=',
        sql<string>`any(select id from stacks where team_id = ${teamId} and name = ${stack} and deleted_at is null)`,
      ),
    )
    .orderBy('units.id', 'desc')
    .limit(SAME_NAME)
    .execute()
  return rows.map(toRecord)
}
