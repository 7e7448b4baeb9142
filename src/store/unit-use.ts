// Uses of units: the idle window of a running unit begins again with each. Of any team.

import { type Kysely, sql } from 'kysely'
import type { Database } from './schema.ts'
import { prepare } from './prepared.ts'
import { selectUnits, toRecord, type UnitRecord, type UnitRow } from './unit-record.ts'
import { windowEnd } from './windows.ts'

/**
 * Records a use of a running unit that sleeps by itself. Returns false if it does not run. Its commit does not wait
 * for the disk: a crash of the database loses less time than a restart adds (domain/time/heartbeat.ts).
 */
export async function touchUnit(
  db: Kysely<Database>,
  { id, usedAt }: { id: string; usedAt: Date },
): Promise<boolean> {
  return (await touchOne(db, { id, usedAt })).length > 0
}

const touchOne = prepare<{ id: string }, { id: string; usedAt: Date }>(
  'touch_unit',
  ['id', 'usedAt'],
  ({ id, usedAt }) => sql`
    with lazily as (select set_config('synchronous_commit', 'off', true) as set)
    update units
    set last_used_at = ${usedAt}, sleeps_at = ${windowEnd(sql<Date>`${usedAt}::timestamptz`)}
    from lazily
    where units.id = ${id} and units.state = 'running'
    returning units.id
  `,
)

/**
 * Records a use of a unit of the team, and returns the unit. Null if it does not run, or sleeps together with others: then
 * nothing was recorded.
 */
export async function useRunningUnit(
  db: Kysely<Database>,
  given: { teamId: string; id: string; usedAt: Date },
): Promise<UnitRecord | null> {
  const [row] = await useOne(db, given)
  return row ? toRecord(row) : null
}

const useOne = prepare<UnitRow, { teamId: string; id: string; usedAt: Date }>(
  'use_running_unit',
  ['teamId', 'id', 'usedAt'],
  ({ teamId, id, usedAt }, db) => sql`
    with lazily as (select set_config('synchronous_commit', 'off', true) as set), used as (
      update units
      set last_used_at = ${usedAt}, sleeps_at = ${windowEnd(sql<Date>`${usedAt}::timestamptz`)}
      from lazily
      where units.id = ${id} and units.team_id = ${teamId} and units.state = 'running' and not units.sleeps_together
      returning units.id
    )
    select found.* from used join ${selectUnits(db, usedAt).where('units.id', '=', id)} as found using (id)
  `,
)

export type Touch = {
  ids: string[]
  usedAt: Date
  /** Skips units that were used later than this. */
  ifUsedBefore?: Date
}

/**
 * The same for several units. Those that sleep together with others postpone the sleep of these too. All rows are
 * locked in one order, since two statements on units of one stack could otherwise deadlock. Returns which were used.
 */
export async function touchUnits(
  db: Kysely<Database>,
  { ids, usedAt, ifUsedBefore }: Touch,
): Promise<Set<string>> {
  const isUsed = sql<boolean>`units.id = any(${ids})
    ${ifUsedBefore ? sql`and units.last_used_at <= ${ifUsedBefore}` : sql``}`
  const used = db.selectFrom('units').where('units.state', '=', 'running').where(isUsed)
  const together = used
    .innerJoin('units as other', 'other.stack_id', 'units.stack_id')
    .where('units.sleeps_together', '=', true)
    .where('other.sleeps_together', '=', true)
  // As an array; otherwise Postgres scans all running units.
  const all = sql<string>`any(array(${used.select('units.id').union(together.select('other.id'))}))`
  const touched = await db
    .with('lazily', lazily)
    .with('touched', (query) =>
      query
        .selectFrom('units')
        .select(['units.id', isUsed.as('used')])
        .where('units.state', '=', 'running')
        .where('units.id', '=', all)
        .orderBy('units.id')
        .forNoKeyUpdate(),
    )
    .updateTable('units')
    .from(['lazily', 'touched'])
    .set({
      last_used_at: sql`case when touched.used then ${usedAt}::timestamptz else units.last_used_at end`,
      sleeps_at: windowEnd(sql<Date>`${usedAt}::timestamptz`),
    })
    .whereRef('units.id', '=', 'touched.id')
    .where('units.state', '=', 'running')
    .returning(['units.id', 'touched.used'])
    .execute()
  return new Set(touched.flatMap(({ id, used }) => (used ? [id] : [])))
}

/** Part of a statement: its commit does not wait for the disk. */
function lazily(db: Pick<Kysely<Database>, 'selectNoFrom'>) {
  return db.selectNoFrom(sql`set_config('synchronous_commit', 'off', true)`.as('set'))
}
