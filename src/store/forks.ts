// Forks: units of a team copied together into one stack. In progress until it has ended, with or without an error.

import type { ColumnType, Kysely } from 'kysely'
import type { Database } from './db.ts'
import type { Progress, UnitRecord } from './unit-record.ts'

/**
 * Why a fork failed, and for which unit: a copy, which is in `error`, or a source that was destroyed before it was
 * copied.
 */
export type ForkError = { text: string; unitId: string; isSourceGone?: true }

export type ForksTable = {
  id: string
  team_id: string
  /** The id of a unit or a stack. */
  source_id: string
  /** The stack of the copies. */
  stack_id: string
  /** The credential that requested the fork. */
  made_by: string
  /** Skipped units of the source, each with the reason. */
  skipped: ColumnType<string[], string, never>
  progress: ColumnType<Progress | null, string | null, string | null>
  created_at: Date
  ended_at: Date | null
  error: ColumnType<ForkError | null, string | null, string | null>
}

export type ForkRecord = {
  id: string
  teamId: string
  sourceId: string
  stackId: string
  stackName: string
  skipped: string[]
  progress: Progress | null
  endedAt: Date | null
  error: ForkError | null
}

export async function insertFork(
  db: Kysely<Database>,
  fork: Pick<ForkRecord, 'id' | 'teamId' | 'sourceId' | 'stackId' | 'skipped'> & {
    madeBy: string
    createdAt: Date
  },
): Promise<void> {
  await db
    .insertInto('forks')
    .values({
      id: fork.id,
      team_id: fork.teamId,
      source_id: fork.sourceId,
      stack_id: fork.stackId,
      made_by: fork.madeBy,
      skipped: JSON.stringify(fork.skipped),
      progress: null,
      created_at: fork.createdAt,
      ended_at: null,
      error: null,
    })
    .execute()
}

export async function findFork(
  db: Kysely<Database>,
  { teamId, id }: { teamId: string; id: string },
): Promise<ForkRecord | null> {
  const row = await selectForks(db)
    .where('forks.id', '=', id)
    .where('forks.team_id', '=', teamId)
    .executeTakeFirst()
  return row ?? null
}

/** Of any team: the forks in progress, which a crash may have interrupted. */
export async function listForksUnderWay(db: Kysely<Database>): Promise<ForkRecord[]> {
  return await selectForks(db).where('forks.ended_at', 'is', null).orderBy('forks.id').execute()
}

/** Returns false if the fork has ended. */
export async function saveForkProgress(
  db: Kysely<Database>,
  { id, progress }: { id: string; progress: Progress },
): Promise<boolean> {
  const result = await db
    .updateTable('forks')
    .set({ progress: JSON.stringify(progress) })
    .where('id', '=', id)
    .where('ended_at', 'is', null)
    .executeTakeFirst()
  return result.numUpdatedRows === 1n
}

/** Returns true for the caller that ends it: of two, only one decides the outcome. */
export async function endFork(
  db: Kysely<Database>,
  { id, at, error }: { id: string; at: Date; error: ForkError | null },
): Promise<boolean> {
  const result = await db
    .updateTable('forks')
    .set({ ended_at: at, error: error && JSON.stringify(error) })
    .where('id', '=', id)
    .where('ended_at', 'is', null)
    .executeTakeFirst()
  return result.numUpdatedRows === 1n
}

function selectForks(db: Kysely<Database>) {
  return db
    .selectFrom('forks')
    .innerJoin('stacks', 'stacks.id', 'forks.stack_id')
    .select(['forks.id', 'forks.team_id as teamId', 'forks.source_id as sourceId'])
    .select(['forks.stack_id as stackId', 'stacks.name as stackName', 'forks.skipped'])
    .select(['forks.progress', 'forks.ended_at as endedAt', 'forks.error'])
}

/** Saves the address of a copy, and that its disk exists. Returns false if the unit has changed state. */
export async function saveCopy(
  db: Kysely<Database>,
  { id, revision, address }: Pick<UnitRecord, 'id' | 'revision' | 'address'>,
): Promise<boolean> {
  const result = await db
    .updateTable('units')
    .set({ address, copied: 'disk' })
    .where('id', '=', id)
    .where('revision', '=', revision)
    .executeTakeFirst()
  return result.numUpdatedRows === 1n
}
