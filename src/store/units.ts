// Queries over units. One with a caller behind it takes the team; those of loops and reconcilers say so in
// their name or comment.

import type { Kysely } from 'kysely'
import { liveStates, passingStates, type UnitState } from '../contract/states.ts'
import type { Database } from './db.ts'
import { selectUnits, toRecord, type UnitRecord, type UnitsTable } from './unit-record.ts'

export async function insertUnit(db: Kysely<Database>, unit: UnitsTable): Promise<void> {
  await db.insertInto('units').values(unit).execute()
}

/** The unit, if it is this team's. */
export async function findUnit(
  db: Kysely<Database>,
  { teamId, id, now }: { teamId: string; id: string; now: Date },
): Promise<UnitRecord | null> {
  const row = await selectUnits(db, now)
    .where('units.id', '=', id)
    .where('units.team_id', '=', teamId)
    .executeTakeFirst()
  return row ? toRecord(row) : null
}

/** Whoever's it is: for the service's own work, never with a caller behind it. */
export async function findUnitOfAnyTeam(
  db: Kysely<Database>,
  { id, now }: { id: string; now: Date },
): Promise<UnitRecord | null> {
  const row = await selectUnits(db, now).where('units.id', '=', id).executeTakeFirst()
  return row ? toRecord(row) : null
}

/** Whether the id names a unit at all. Answers nothing about it. */
export async function unitExists(db: Kysely<Database>, id: string): Promise<boolean> {
  return (await db.selectFrom('units').select('id').where('id', '=', id).executeTakeFirst()) !== undefined
}

export type UnitFilter = {
  teamId: string
  /** Id or name of a stack. */
  stack: string | null
  destroyedToo: boolean
  /** Only units made before the one of this id. */
  before: string | null
  limit: number
  now: Date
}

/** Newest first. */
export async function listUnitsOfTeam(db: Kysely<Database>, filter: UnitFilter): Promise<UnitRecord[]> {
  const { teamId, stack, destroyedToo, before, limit, now } = filter
  const rows = await selectUnits(db, now)
    .where('units.team_id', '=', teamId)
    .$if(!destroyedToo, (query) => query.where('units.state', '<>', 'destroyed'))
    .$if(before !== null, (query) => query.where('units.id', '<', before ?? ''))
    .$if(stack !== null, (query) =>
      query.where((where) =>
        where.or([where('stacks.id', '=', stack ?? ''), where('stacks.name', '=', stack ?? '')]),
      ),
    )
    .orderBy('units.id', 'desc')
    .limit(limit)
    .execute()
  return rows.map(toRecord)
}

export async function unitNameTaken(
  db: Kysely<Database>,
  { stackId, name }: { stackId: string; name: string },
): Promise<boolean> {
  const row = await db
    .selectFrom('units')
    .select('id')
    .where('stack_id', '=', stackId)
    .where('name', '=', name)
    .where('state', '<>', 'destroyed')
    .executeTakeFirst()
  return row !== undefined
}

/** Units that use up this credential's concurrency now. Call it with the team locked. */
export async function countLiveUnits(db: Kysely<Database>, heldBy: string): Promise<number> {
  const { count } = await db
    .selectFrom('units')
    .select((select) => select.fn.countAll<bigint>().as('count'))
    .where('held_by', '=', heldBy)
    .where('state', 'in', liveStates)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Of any team: what a crash, or an engine that was away, may have left half done. */
export async function listPassingUnits(db: Kysely<Database>, now: Date): Promise<UnitRecord[]> {
  const rows = await selectUnits(db, now).where('units.state', 'in', passingStates).execute()
  return rows.map(toRecord)
}

/** Of any team: running units whose window has passed, longest overdue first. */
export async function listUnitsDueToSleep(
  db: Kysely<Database>,
  { now, limit }: { now: Date; limit: number },
): Promise<UnitRecord[]> {
  const rows = await selectUnits(db, now)
    .where('units.state', '=', 'running')
    .where('units.sleeps_at', '<=', now)
    .orderBy('units.sleeps_at')
    .limit(limit)
    .execute()
  return rows.map(toRecord)
}

/** Of any team: units in `error` whose hour has passed. */
export async function listUnitsDueToBeDestroyed(
  db: Kysely<Database>,
  { now, limit }: { now: Date; limit: number },
): Promise<UnitRecord[]> {
  const rows = await selectUnits(db, now)
    .where('units.state', '=', 'error')
    .where('units.destroys_at', '<=', now)
    .orderBy('units.destroys_at')
    .limit(limit)
    .execute()
  return rows.map(toRecord)
}

/** Of any team: every unit that has, or may have, a machine. */
export async function listUnitsWithMachines(
  db: Kysely<Database>,
): Promise<{ id: string; state: UnitState; generation: number; changedAt: Date }[]> {
  return await db
    .selectFrom('units')
    .select(['id', 'state', 'generation', 'changed_at as changedAt'])
    .where('state', 'not in', ['destroyed', 'error'])
    .execute()
}

/** The machine's address, while the unit is still being made. False: it is not any more. */
export async function setAddress(
  db: Kysely<Database>,
  { id, address }: { id: string; address: string },
): Promise<boolean> {
  const result = await db
    .updateTable('units')
    .set({ address })
    .where('id', '=', id)
    .where('state', '=', 'creating')
    .executeTakeFirst()
  return result.numUpdatedRows === 1n
}

/** Records a use of a running unit of the team. False: it is not running now. */
export async function touchUnit(
  db: Kysely<Database>,
  use: { teamId: string; id: string; usedAt: Date; sleepsAt: Date | null },
): Promise<boolean> {
  const result = await db
    .updateTable('units')
    .set({ last_used_at: use.usedAt, sleeps_at: use.sleepsAt })
    .where('id', '=', use.id)
    .where('team_id', '=', use.teamId)
    .where('state', '=', 'running')
    .executeTakeFirst()
  return result.numUpdatedRows === 1n
}
