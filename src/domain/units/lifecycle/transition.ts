// The only way to change a unit's state: the table of contract/states.ts decides whether it is allowed, and a
// compare-and-set in the database records it once.

import type { Kysely } from 'kysely'
import type { App } from '../../../app.ts'
import { nextState, type Status, type Trigger } from '../../../contract/states.ts'
import { HOUR } from '../../../lib/clock.ts'
import { changeState, type StateFields } from '../../../store/unit-state.ts'
import type { Database } from '../../../store/db.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { noteChanged } from '../../transactions/changes.ts'
import { ratesOf } from '../../billing/rates.ts'

/** How long a unit in `error` is kept so that its owner can read why. */
const KEEP_ERRORS_MS = HOUR

export type TransitionOptions = {
  set?: StateFields
  /** When the machine was started, in monotonic time. */
  startedMs?: number
  /** When the run ended, if that was earlier than now: it is billed up to then. */
  endedAt?: Date
  /** Only if the unit is due to sleep and has not been used in the meantime. */
  ifDue?: boolean
  /** Only if its time to live has passed. */
  ifEnded?: boolean
  /** Only if the unit was not used after this time. */
  ifUnusedSince?: Date
  /** A transaction to take part in. */
  db?: Kysely<Database>
}

/**
 * Returns the unit after the change, or null if the table does not allow it in the state of this record, or another
 * process has changed the unit since it was read.
 */
export async function transition(
  app: App,
  unit: UnitRecord,
  trigger: Trigger,
  options: TransitionOptions = {},
): Promise<UnitRecord | null> {
  const to = nextState(unit, trigger)
  if (!to) return null
  // A transaction holds locks and must not wait for the time, so runs begin and end outside.
  return options.db
    ? await move(app, unit, to, options)
    : await app.clock.withStableTime(() => move(app, unit, to, options))
}

async function move(
  app: App,
  unit: UnitRecord,
  to: Status,
  {
    set = {},
    startedMs,
    endedAt,
    ifDue = false,
    ifEnded = false,
    ifUnusedSince,
    db = app.db,
  }: TransitionOptions,
): Promise<UnitRecord | null> {
  const at = app.clock.now()
  const startedAt = startedMs === undefined ? null : earlier(at, app.clock.monotonicMs() - startedMs)
  const [before, after] = [ratesOf(unit), ratesOf({ ...unit, state: to.state })]
  const fields: StateFields = { ...impliedBy(to, at), ...(startedAt ? { startedAt } : {}), ...set }
  const changed = await changeState(db, {
    id: unit.id,
    from: { state: unit.state, revision: unit.revision },
    to,
    at,
    opens: after.filter(({ kind }) => before.every((rate) => rate.kind !== kind)),
    closes: before.map(({ kind }) => kind).filter((kind) => after.every((rate) => rate.kind !== kind)),
    endedAt: endedAt === undefined || endedAt < at ? (endedAt ?? null) : at,
    ...(ifDue ? { ifSleepsBy: at } : {}),
    ...(ifEnded ? { ifEndsBy: at } : {}),
    ...(ifUnusedSince === undefined ? {} : { ifUnusedSince }),
    set: fields,
  })
  if (!changed) return null
  noteChanged(app, db, unit.teamId)
  const moved = { ...unit, ...fields, ...to, revision: unit.revision + 1n, changedAt: at }
  app.activity.stateChanged(unit, moved)
  return moved
}

function earlier(at: Date, ms: number): Date {
  return new Date(at.getTime() - Math.round(ms))
}

/** The fields that spec 2.1 ties to a state. */
function impliedBy({ state, frozen }: Status, at: Date): StateFields {
  switch (state) {
    // Its idle window begins, with the row's length at that time (unit-state.ts).
    case 'running':
      return { lastUsedAt: at, error: null }
    case 'error':
      return {
        sleepsAt: null,
        endsAt: null,
        address: null,
        destroysAt: new Date(at.getTime() + KEEP_ERRORS_MS),
      }
    // Released before the machine is gone, since another machine may get it right after.
    case 'destroying':
      return { sleepsAt: null, endsAt: null, address: null, destroysAt: null }
    // Only the operation knows whether the memory was kept.
    case 'sleeping':
      return { sleepsAt: null, destroysAt: null, ...(frozen ? {} : { memoryOutcome: 'gone' }) }
    default:
      return { sleepsAt: null, destroysAt: null }
  }
}
