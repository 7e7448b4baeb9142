// Finds units of a team by name, as a person or an agent refers to them.

import { type Kysely, sql } from 'kysely'
import type { Database } from './schema.ts'
import { selectUnits, toRecord, type UnitRecord } from './unit-record.ts'

const SAME_NAME = 5

/** By name and optionally the name of their stack, newest first; destroyed units have no name any more. */
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
