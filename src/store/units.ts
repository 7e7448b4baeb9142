// Queries over units. One with a caller behind it takes the team; those of loops and reconcilers say so in
// their name or comment.

import { type Insertable, type Kysely, sql } from 'kysely'
import { liveStates, passingStates } from '../contract/states.ts'
import type { Database } from './db.ts'
import { windowEnd } from './windows.ts'
import { selectUnits, toRecord, type UnitRecord, type UnitsTable } from './unit-record.ts'

export async function insertUnit(db: Kysely<Database>, unit: Insertable<UnitsTable>): Promise<void> {
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
    // Those that sleep together wait for the last of them.
    .where((where) =>
      where.or([
        where('units.sleeps_together', '=', false),
        where.not(
          where.exists(
            where
              .selectFrom('units as other')
              .select('other.id')
              .whereRef('other.stack_id', '=', 'units.stack_id')
              .where('other.sleeps_together', '=', true)
              .where((awake) =>
                awake.or([
                  awake('other.state', 'in', ['creating', 'starting']),
                  awake.and([
                    awake('other.state', '=', 'running'),
                    awake.or([awake('other.sleeps_at', 'is', null), awake('other.sleeps_at', '>', now)]),
                  ]),
                ]),
              ),
          ),
        ),
      ]),
    )
    .orderBy('units.sleeps_at')
    .limit(limit)
    .execute()
  return rows.map(toRecord)
}

/** Of any team: frozen units, longest asleep first; only those asleep since before `since` where it is given. */
export async function listFrozenUnits(
  db: Kysely<Database>,
  { now, since, limit }: { now: Date; since: Date | null; limit: number },
): Promise<UnitRecord[]> {
  const rows = await selectUnits(db, now)
    .where('units.state', '=', 'sleeping')
    .where('units.frozen', '=', true)
    .$if(since !== null, (query) => query.where('units.changed_at', '<=', since ?? now))
    .orderBy('units.changed_at')
    .limit(limit)
    .execute()
  return rows.map(toRecord)
}

/** Of one stack: its units that sleep and wake together, oldest first. */
export async function listUnitsTogether(
  db: Kysely<Database>,
  { teamId, stackId, now }: { teamId: string; stackId: string; now: Date },
): Promise<UnitRecord[]> {
  const rows = await selectUnits(db, now)
    .where('units.team_id', '=', teamId)
    .where('units.stack_id', '=', stackId)
    .where('units.sleeps_together', '=', true)
    .where('units.state', '<>', 'destroyed')
    .orderBy('units.id')
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
): Promise<Pick<UnitRecord, 'id' | 'state' | 'generation' | 'frozen' | 'changedAt'>[]> {
  return await db
    .selectFrom('units')
    .select(['id', 'state', 'generation', 'frozen', 'changed_at as changedAt'])
    .where('state', 'not in', ['destroyed', 'error'])
    .execute()
}

/** How far a unit has come on its way, and the address it was given on it. False: it is on another way now. */
export async function saveProgress(
  db: Kysely<Database>,
  unit: Pick<UnitRecord, 'id' | 'state' | 'generation' | 'address' | 'progress'>,
): Promise<boolean> {
  const result = await db
    .updateTable('units')
    .set({ address: unit.address, progress: unit.progress && JSON.stringify(unit.progress) })
    .where('id', '=', unit.id)
    .where('state', '=', unit.state)
    .where('generation', '=', unit.generation)
    .executeTakeFirst()
  return result.numUpdatedRows === 1n
}

/**
 * Records a use of a running unit of the team. Those that sleep together with it are put off with it. False:
 * it is not running now. Not waited for on disk: what a crash of the database can lose of it is less than
 * what a restart gives back (recover).
 */
export async function touchUnit(
  db: Kysely<Database>,
  { unit, usedAt }: { unit: UnitRecord; usedAt: Date },
): Promise<boolean> {
  const sleepsAt = windowEnd(sql<Date>`${usedAt}::timestamptz`)
  const result = await db
    .with('lazily', (query) =>
      query.selectNoFrom(sql`set_config('synchronous_commit', 'off', true)`.as('set')),
    )
    .with('together', (query) =>
      query
        .updateTable('units')
        .set({ sleeps_at: sleepsAt })
        .where('stack_id', '=', unit.stackId)
        .where('id', '<>', unit.id)
        .where('sleeps_together', '=', true)
        .where('state', '=', 'running')
        .where(sql<boolean>`${unit.sleepsTogether}`),
    )
    .updateTable('units')
    .from('lazily')
    .set({ last_used_at: usedAt, sleeps_at: sleepsAt })
    .where('units.id', '=', unit.id)
    .where('units.team_id', '=', unit.teamId)
    .where('units.state', '=', 'running')
    .executeTakeFirst()
  return result.numUpdatedRows === 1n
}
