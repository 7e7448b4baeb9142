// Forks: units of a team copied together into one stack. In progress until it has ended, with or without an error.

import type { Kysely } from 'kysely'
import type { Database } from './schema.ts'
import type { Progress, UnitRecord } from './unit-record.ts'
import type { ForkError } from './tables/forks.ts'

export type { ForkError } from './tables/forks.ts'

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
