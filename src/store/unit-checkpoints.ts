// Stores when the memory of a unit was checkpointed, and whether that worked: one row for a run that a long sleep ended.

import { type Kysely, sql } from 'kysely'
import type { Database } from './schema.ts'

export type UnitCheckpoint = { at: Date; kept: boolean }

/** A second one of the same run is the same, told again after a crash. */
export async function addUnitCheckpoint(
  db: Kysely<Database>,
  { unitId, generation, at, kept }: UnitCheckpoint & { unitId: string; generation: number },
): Promise<void> {
  await db
    .insertInto('unit_checkpoints')
    .values({ unit_id: unitId, generation, at, kept })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** The newest, oldest first. */
export async function listUnitCheckpoints(
  db: Kysely<Database>,
  { unitId, since, limit }: { unitId: string; since: Date; limit: number },
): Promise<UnitCheckpoint[]> {
  const rows = await db
    .selectFrom('unit_checkpoints')
    .select(['at', 'kept'])
    .where('unit_id', '=', unitId)
    .where('at', '>=', since)
    .orderBy('generation', 'desc')
    .limit(limit)
    .execute()
  return rows.toReversed()
}

/** Returns how many rows were deleted. */
export async function deleteUnitCheckpoints(
  db: Kysely<Database>,
  { before, limit }: { before: Date; limit: number },
): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    delete from unit_checkpoints where ctid = any(array(
      select ctid from unit_checkpoints where at < ${before} order by at limit ${limit}
    ))`.execute(db)
  return Number(numAffectedRows)
}
