// The one statement that changes a unit's state. Optimistic locking on `revision`: one concurrent writer wins; stale
// reads always lose. The same statement opens and closes the meters of what begins or ceases to cost, and retires the
// endpoints of a unit that is destroyed: neither can happen without the other.

import { type Kysely, type QueryCreator, type RawBuilder, type Selectable, sql } from 'kysely'
import type { Copied } from '../contract/unit.ts'
import type { StoppedReason, UnitState } from '../contract/states.ts'
import { SECOND } from '../lib/clock.ts'
import type { Database } from './schema.ts'
import type { MemoryOutcome, StoredExit, UnitsTable } from './unit-record.ts'
import { countedBefore, type MeterKind, provenBy } from './meters.ts'
import { lifeEnd } from './unit-ends.ts'
import { windowEnd } from './windows.ts'

export type StateChange = {
  id: string
  from: { state: UnitState; revision: bigint }
  to: { state: UnitState; generation: number; stoppedReason: StoppedReason | null; frozen: boolean }
  at: Date
  /** The meters that start with this change. */
  opens: { kind: MeterKind; nanoCentsPerHour: bigint }[]
  /** The meters that end with this change. */
  closes: MeterKind[]
  /** When the run was seen to end; null: it ends with this change. */
  endedAt: Date | null
  /** Refuse if the unit is due to sleep later than this, because it was used in the meantime. */
  ifSleepsBy?: Date
  /** Refuse if the time to live of the unit ends later than this, or not at all. */
  ifEndsBy?: Date
  /** Refuse if the unit was used later than this. */
  ifUnusedSince?: Date
  set: StateFields
}

/** Fields that may change together with the state; absent ones stay. */
export type StateFields = {
  heldBy?: string
  address?: null
  sleepsAt?: null
  lastUsedAt?: Date
  startedAt?: Date
  runtime?: string | null
  lastExit?: StoredExit
  error?: string | null
  destroysAt?: Date | null
  endsAt?: null
  timeToLive?: null
  copied?: Copied
  memoryOutcome?: MemoryOutcome | null
}

/** Returns whether this call made the change. Only domain/units/lifecycle/transition.ts calls this. */
export async function changeState(db: Kysely<Database>, change: StateChange): Promise<boolean> {
  const { to, at, opens, closes, endedAt } = change
  const goes = to.state === 'destroying' || to.state === 'error'
  // What was charged is never taken back.
  const end = sql<Date>`greatest(meters.billed_to, ${endedAt === null ? endOf(at) : sql`${endedAt}::timestamptz`})`
  if (opens.length + closes.length === 0 && !goes) return (await moveUnit(db, change).execute()).length === 1
  // Only the parts that this change needs, because each is planned and started: a create and a wake wait for one of three.
  let all: Moving = db.with('moved', (query) => moveUnit(query, change))
  if (opens.length > 0) all = all.with('opened', (query) => openMeters(query, change))
  if (closes.length > 0) {
    all = all.with('closed', (query) =>
      query
        .updateTable('meters')
        .from('moved')
        .set({ ended_at: end, billed_to: end })
        .whereRef('meters.unit_id', '=', 'moved.id')
        .where('meters.ended_at', 'is', null)
        .where('meters.kind', '=', sql<MeterKind>`any(${closes})`),
    )
  }
  if (goes) {
    all = all.with('retired', (query) =>
      query
        .updateTable('endpoints')
        .from('moved')
        .set({ retired_at: at })
        .whereRef('endpoints.unit_id', '=', 'moved.id')
        .where('endpoints.retired_at', 'is', null),
    )
  }
  return (await all.selectFrom('moved').select('id').execute()).length === 1
}

type Moving = QueryCreator<Database & { moved: Moved }>

/** A machine that was not seen for longer than this may have died. Three heartbeats. */
const UNSEEN_MS = 15 * SECOND

/**
 * A machine that is stopped while it cannot be seen is billed up to when it was last seen, since it may have died
 * right after (reliability B4). A volume exists in any case.
 */
function endOf(at: Date): RawBuilder<Date> {
  const seen = provenBy(at)
  const unseenSince = new Date(at.getTime() - UNSEEN_MS)
  return sql<Date>`case when meters.kind = 'compute' and ${seen} < ${unseenSince} then ${seen} else ${at}::timestamptz end`
}

type Moved = Pick<Selectable<UnitsTable>, 'id' | 'host_id' | 'generation' | 'team_id' | 'held_by' | 'size'>

function openMeters(query: QueryCreator<Database & { moved: Moved }>, { at, opens }: StateChange) {
  // As rows: arrays of unknown length have Postgres plan the statement each time.
  const rates = sql.join(
    opens.map(({ kind, nanoCentsPerHour }) => sql`(${kind}::text, ${nanoCentsPerHour}::bigint)`),
  )
  const began = sql<Date>`${at}::timestamptz`
  return query
    .insertInto('meters')
    .columns([
      'unit_id',
      'kind',
      'generation',
      'host_id',
      'team_id',
      'held_by',
      'size',
      'price_nano_cents_per_hour',
      'counted_before',
      'started_at',
      'billed_to',
    ])
    .expression((from) =>
      from
        .selectFrom([
          'moved',
          sql<{ kind: MeterKind; price: bigint }>`(values ${rates})`.as<'rate'>(sql`rate(kind, price)`),
        ])
        .select([
          'moved.id',
          'rate.kind',
          'moved.generation',
          'moved.host_id',
          'moved.team_id',
          'moved.held_by',
          'moved.size',
          'rate.price',
          countedBefore('moved.id', 'rate.kind').as('counted_before'),
          began.as('started_at'),
          began.as('billed_to'),
        ]),
    )
}

/** Whether a run begins. */
function begins({ from, to }: StateChange): boolean {
  return to.state === 'running' && from.state !== 'running'
}

/** Whether the unit is there for the first time: its time to live begins. */
function isMade({ from, to }: StateChange): boolean {
  return from.state === 'creating' && ['running', 'sleeping', 'stopped'].includes(to.state)
}

function moveUnit(query: QueryCreator<Database>, change: StateChange) {
  const { id, from, to, at, set, ifSleepsBy, ifEndsBy, ifUnusedSince } = change
  return query
    .updateTable('units')
    .set({
      state: to.state,
      revision: from.revision + 1n,
      generation: to.generation,
      stopped_reason: to.stoppedReason,
      frozen: to.frozen,
      changed_at: at,
      // The progress stays while the unit is in the same state.
      ...(to.state === from.state ? {} : { progress: null }),
      ...toColumns(set),
      ...(begins(change) ? { sleeps_at: windowEnd(sql<Date>`${at}::timestamptz`) } : {}),
      ...(isMade(change) ? { ends_at: lifeEnd(at) } : {}),
    })
    .where('id', '=', id)
    .where('revision', '=', from.revision)
    .$if(ifUnusedSince !== undefined, (update) => update.where('last_used_at', '<=', ifUnusedSince ?? at))
    .$if(ifEndsBy !== undefined, (update) => update.where('ends_at', '<=', ifEndsBy ?? at))
    .$if(ifSleepsBy !== undefined, (update) => update.where('sleeps_at', '<=', ifSleepsBy ?? at))
    .returning(['id', 'host_id', 'generation', 'team_id', 'held_by', 'size'])
}

/** Kysely leaves undefined fields out of an update. */
function toColumns(set: StateFields) {
  return {
    held_by: set.heldBy,
    address: set.address,
    sleeps_at: set.sleepsAt,
    last_used_at: set.lastUsedAt,
    started_at: set.startedAt,
    runtime: set.runtime,
    last_exit: set.lastExit,
    error: set.error,
    destroys_at: set.destroysAt,
    memory_outcome: set.memoryOutcome,
    ends_at: set.endsAt,
    time_to_live: set.timeToLive,
    copied: set.copied,
  }
}
