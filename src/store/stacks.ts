// Stacks: named groups of a team's units. A deleted stack keeps its row for the units that were in it.

import { type Kysely, sql } from 'kysely'
import type { Database } from './schema.ts'

export type StackRecord = {
  id: string
  teamId: string
  name: string
  createdAt: Date
  sleep: string | null
  isUnnamed: boolean
  madeBy: string | null
  deletedAt: Date | null
}

/**
 * Locks the team until the transaction ends: no other transaction can admit, name or count anything in it. Returns
 * false if the team is deleted, also if that happened while this call waited.
 */
export async function lockTeam(db: Kysely<Database>, teamId: string): Promise<boolean> {
  const { rows } = await sql`
    select 1 from teams where id = ${teamId} and deleted_at is null for no key update
  `.execute(db)
  return rows.length === 1
}

/** Locks the stack until the transaction ends: it can be neither named nor deleted. Lock its units only after it. */
export async function lockStack(db: Kysely<Database>, id: string): Promise<void> {
  await sql`select 1 from stacks where id = ${id} for no key update`.execute(db)
}

/** A deleted stack has no name any more. */
export async function findStackByName(
  db: Kysely<Database>,
  { teamId, name }: { teamId: string; name: string },
): Promise<StackRecord | null> {
  const row = await selectStacks(db)
    .where('team_id', '=', teamId)
    .where('name', '=', name)
    .where('deleted_at', 'is', null)
    .executeTakeFirst()
  return row ?? null
}

/** Returns the stack if it is this team's, also a deleted one. */
export async function findStack(
  db: Kysely<Database>,
  { teamId, id }: { teamId: string; id: string },
): Promise<StackRecord | null> {
  const row = await selectStacks(db).where('id', '=', id).where('team_id', '=', teamId).executeTakeFirst()
  return row ?? null
}

/** Whether the id belongs to any stack. Reveals nothing else about it. */
export async function stackExists(db: Kysely<Database>, id: string): Promise<boolean> {
  return (await db.selectFrom('stacks').select('id').where('id', '=', id).executeTakeFirst()) !== undefined
}

export type StackFilter = {
  teamId: string
  /** Only stacks older than the one with this id. */
  before: string | null
  limit: number
}

/** Newest first, with the number of units in each. */
export async function listStacksOfTeam(
  db: Kysely<Database>,
  { teamId, before, limit }: StackFilter,
): Promise<(StackRecord & { unitCount: number })[]> {
  return await selectStacks(db)
    .select(
      sql<number>`(select count(*)::int from units where stack_id = stacks.id and state <> 'destroyed')`.as(
        'unitCount',
      ),
    )
    .where('team_id', '=', teamId)
    .where('deleted_at', 'is', null)
    .$if(before !== null, (query) => query.where('id', '<', before ?? ''))
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()
}

export async function insertStack(
  db: Kysely<Database>,
  stack: Omit<StackRecord, 'deletedAt'>,
): Promise<void> {
  await insertionOf(db, stack).execute()
}

/** Returns false, and inserts nothing, if the team has a stack of that name. */
export async function insertStackUnlessTaken(
  db: Kysely<Database>,
  stack: Omit<StackRecord, 'deletedAt'>,
): Promise<boolean> {
  const result = await insertionOf(db, stack)
    .onConflict((conflict) =>
      conflict.columns(['team_id', 'name']).where('deleted_at', 'is', null).doNothing(),
    )
    .executeTakeFirst()
  return result.numInsertedOrUpdatedRows === 1n
}

function insertionOf(db: Kysely<Database>, stack: Omit<StackRecord, 'deletedAt'>) {
  return db.insertInto('stacks').values({
    id: stack.id,
    team_id: stack.teamId,
    name: stack.name,
    created_at: stack.createdAt,
    sleep: stack.sleep,
    unnamed: stack.isUnnamed,
    made_by: stack.madeBy,
  })
}

/** A call names the stack, so it no longer ends with its units. Returns false if it has just been deleted. */
export async function nameStack(
  db: Kysely<Database>,
  { teamId, id }: { teamId: string; id: string },
): Promise<boolean> {
  const result = await db
    .updateTable('stacks')
    .set({ unnamed: false, made_by: null })
    .where('id', '=', id)
    .where('team_id', '=', teamId)
    .where('deleted_at', 'is', null)
    .executeTakeFirst()
  return result.numUpdatedRows === 1n
}

export async function deleteStack(
  db: Kysely<Database>,
  { teamId, id, at }: { teamId: string; id: string; at: Date },
): Promise<void> {
  await db
    .updateTable('stacks')
    .set({ deleted_at: at })
    .where('id', '=', id)
    .where('team_id', '=', teamId)
    .where('deleted_at', 'is', null)
    .execute()
}

export async function deleteStacksOfTeam(
  db: Kysely<Database>,
  { teamId, at }: { teamId: string; at: Date },
): Promise<void> {
  await db
    .updateTable('stacks')
    .set({ deleted_at: at })
    .where('team_id', '=', teamId)
    .where('deleted_at', 'is', null)
    .execute()
}

/** The create that made the stack failed: it is deleted with its last unit, unless another call has named it. */
export async function abandonStack(
  db: Kysely<Database>,
  { id, madeBy }: { id: string; madeBy: string },
): Promise<void> {
  const own = db.updateTable('stacks').where('id', '=', id).where('made_by', '=', madeBy)
  await own.set({ unnamed: true }).execute()
}

/**
 * Call it with the stack locked, once a unit of it is gone. If that was the last unit of an unnamed stack, the stack is
 * deleted with its secrets.
 */
export async function deleteStackOfLastUnit(
  db: Kysely<Database>,
  { id, at }: { id: string; at: Date },
): Promise<void> {
  await db
    .with('deleted', (query) =>
      query
        .updateTable('stacks')
        .set({ deleted_at: at })
        .where('id', '=', id)
        .where('unnamed', '=', true)
        .where('deleted_at', 'is', null)
        .where((where) =>
          where.not(
            where.exists(
              where
                .selectFrom('units')
                .select('units.id')
                .whereRef('units.stack_id', '=', 'stacks.id')
                .where('units.state', 'not in', ['error', 'destroyed']),
            ),
          ),
        )
        .returning('id'),
    )
    .deleteFrom('secrets')
    .where('owner_id', 'in', (query) => query.selectFrom('deleted').select('id'))
    .execute()
}

function selectStacks(db: Kysely<Database>) {
  return db
    .selectFrom('stacks')
    .select(['id', 'team_id as teamId', 'name', 'created_at as createdAt', 'sleep'])
    .select(['unnamed as isUnnamed', 'made_by as madeBy', 'deleted_at as deletedAt'])
}
