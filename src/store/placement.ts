// Which host units are on, for new units (domain/hosts/place.ts).

import { type Kysely, sql } from 'kysely'
import type { Database } from './schema.ts'
import type { UnitRecord } from './unit-record.ts'

/** Where units of a team are, and its region. */
export async function findPlaceOfTeam(
  db: Kysely<Database>,
  teamId: string,
): Promise<{ hostIds: string[]; region: string }> {
  const units = db
    .selectFrom('units')
    .select('host_id')
    .distinct()
    .where('team_id', '=', teamId)
    .where('state', 'not in', ['destroyed', 'error'])
    .orderBy('host_id')
  // One statement: a create waits for it.
  return await db
    .selectFrom('teams')
    .select(['region', sql<string[]>`array(${units})`.as('hostIds')])
    .where('id', '=', teamId)
    .executeTakeFirstOrThrow()
}

/** Whether the team has units besides this one, anywhere. */
export async function hasOtherUnits(
  db: Kysely<Database>,
  { teamId, unitId }: { teamId: string; unitId: string },
): Promise<boolean> {
  const row = await db
    .selectFrom('units')
    .select('id')
    .where('team_id', '=', teamId)
    .where('id', '<>', unitId)
    .where('state', 'not in', ['destroyed', 'error'])
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

/** Returns false if the unit is in another operation, or on another host, by now. */
export async function moveNewUnit(
  db: Kysely<Database>,
  unit: Pick<UnitRecord, 'id' | 'revision' | 'hostId' | 'progress'> & { from: string },
): Promise<boolean> {
  const result = await db
    .updateTable('units')
    .set({ host_id: unit.hostId, address: null, progress: unit.progress && JSON.stringify(unit.progress) })
    .where('id', '=', unit.id)
    .where('revision', '=', unit.revision)
    .where('host_id', '=', unit.from)
    .where('state', '=', 'creating')
    .executeTakeFirst()
  return result.numUpdatedRows === 1n
}
