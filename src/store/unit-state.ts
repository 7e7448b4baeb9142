// The one statement that changes a unit's state. A compare-and-set on its revision: of several who try, one
// succeeds, and none by what was true before. Entering and leaving `running` opens and closes the run that is billed,
// and a unit that goes for good takes its endpoints along, within the same statement: neither can happen without the
// other.

import { type Kysely, type QueryCreator, sql } from 'kysely'
import type { Copied } from '../contract/fork.ts'
import type { StoppedReason, UnitState } from '../contract/states.ts'
import type { Database } from './db.ts'
import type { StoredExit } from './unit-record.ts'
import { windowEnd } from './windows.ts'

export type StateChange = {
  id: string
  from: { state: UnitState; revision: bigint }
  to: { state: UnitState; generation: number; stoppedReason: StoppedReason | null; frozen: boolean }
  at: Date
  /** Where the billed run begins or ends. */
  runAt: Date
  /** Refuse if the unit is due to sleep only later than this: somebody used it meanwhile. */
  ifSleepsBy?: Date
  /** Refuse if the unit was used later than this. */
  ifUnusedSince?: Date
  priceNanoCentsPerHour: bigint
  set: StateFields
}

/** What may change along with the state; what is left out stays. */
export type StateFields = {
  heldBy?: string
  address?: null
  sleepsAt?: null
  lastUsedAt?: Date
  startedAt?: Date
  lastExit?: StoredExit
  error?: string | null
  destroysAt?: Date | null
  copied?: Copied
}

/** True for the one whose change it is. Only domain/units/transition.ts calls this. */
export async function changeState(db: Kysely<Database>, change: StateChange): Promise<boolean> {
  const { from, to, at, runAt } = change
  const opens = begins(change)
  const closes = from.state === 'running' && to.state !== 'running'
  const goes = to.state === 'destroying' || to.state === 'error'
  // Planned and run in a third of the time, for which whoever wakes a unit waits.
  if (!opens && !closes && !goes) return (await moveUnit(db, change).execute()).length === 1
  const moved = await db
    .with('moved', (query) => moveUnit(query, change))
    .with('opened', (query) =>
      query
        .insertInto('runs')
        .columns([
          'unit_id',
          'generation',
          'team_id',
          'held_by',
          'size',
          'price_nano_cents_per_hour',
          'started_at',
        ])
        .expression((from) =>
          from
            .selectFrom('moved')
            .select([
              'id',
              'generation',
              'team_id',
              'held_by',
              'size',
              sql<bigint>`${change.priceNanoCentsPerHour}::bigint`.as('price'),
              sql<Date>`${runAt}::timestamptz`.as('started_at'),
            ])
            .where(sql<boolean>`${opens}`),
        ),
    )
    .with('closed', (query) =>
      query
        .updateTable('runs')
        .from('moved')
        .set({ ended_at: sql<Date>`greatest(runs.started_at, ${runAt}::timestamptz)` })
        .whereRef('runs.unit_id', '=', 'moved.id')
        .where('runs.ended_at', 'is', null)
        .where(sql<boolean>`${closes}`),
    )
    .with('retired', (query) =>
      query
        .updateTable('endpoints')
        .from('moved')
        .set({ retired_at: at })
        .whereRef('endpoints.unit_id', '=', 'moved.id')
        .where('endpoints.retired_at', 'is', null)
        .where(sql<boolean>`${goes}`),
    )
    .selectFrom('moved')
    .select('id')
    .execute()
  return moved.length === 1
}

/** Whether a run begins. */
function begins({ from, to }: StateChange): boolean {
  return to.state === 'running' && from.state !== 'running'
}

function moveUnit(query: QueryCreator<Database>, change: StateChange) {
  const { id, from, to, at, set, ifSleepsBy, ifUnusedSince } = change
  return query
    .updateTable('units')
    .set({
      state: to.state,
      revision: from.revision + 1n,
      generation: to.generation,
      stopped_reason: to.stoppedReason,
      frozen: to.frozen,
      changed_at: at,
      // What is done of the way there stays known while the unit is still on it.
      ...(to.state === from.state ? {} : { progress: null }),
      ...toColumns(set),
      ...(begins(change) ? { sleeps_at: windowEnd(sql<Date>`${at}::timestamptz`) } : {}),
    })
    .where('id', '=', id)
    .where('revision', '=', from.revision)
    .$if(ifUnusedSince !== undefined, (update) => update.where('last_used_at', '<=', ifUnusedSince ?? at))
    .$if(ifSleepsBy !== undefined, (update) => update.where('sleeps_at', '<=', ifSleepsBy ?? at))
    .returning(['id', 'generation', 'team_id', 'held_by', 'size'])
}

/** Kysely leaves out of an update what is undefined. */
function toColumns(set: StateFields) {
  return {
    held_by: set.heldBy,
    address: set.address,
    sleeps_at: set.sleepsAt,
    last_used_at: set.lastUsedAt,
    started_at: set.startedAt,
    last_exit: set.lastExit,
    error: set.error,
    destroys_at: set.destroysAt,
    copied: set.copied,
  }
}
