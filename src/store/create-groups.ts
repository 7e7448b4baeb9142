// Units that were made by one create (domain/units/create-group.ts).

import type { Kysely } from 'kysely'
import type { Database } from './schema.ts'
import { selectUnits, toRecord, type UnitRecord } from './unit-record.ts'

/** Returns the units of one create, in the order in which they start. */
export async function listUnitsOfCreateGroup(
  db: Kysely<Database>,
  { teamId, madeWith, now }: { teamId: string; madeWith: string; now: Date },
): Promise<UnitRecord[]> {
  const rows = await selectUnits(db, now)
    .where('units.team_id', '=', teamId)
    .where('units.made_with', '=', madeWith)
    .orderBy('units.id')
    .execute()
  return rows.map(toRecord)
}

/** Of any team: returns the units that still exist although another unit of their create failed. */
export async function listUnitsOfFailedCreates(
  db: Kysely<Database>,
  { now, limit }: { now: Date; limit: number },
): Promise<UnitRecord[]> {
  const broken = db.selectFrom('units').select('made_with').where('state', '=', 'error')
  const rows = await selectUnits(db, now)
    .where('units.made_with', 'in', broken.where('made_with', 'is not', null))
    .where('units.state', 'not in', ['error', 'destroying', 'destroyed'])
    .limit(limit)
    .execute()
  return rows.map(toRecord)
}
