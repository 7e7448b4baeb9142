// The only way a unit's state changes: the table of contract/states.ts says whether it may, a
// compare-and-set in the database says who did it, and when.

import type { Kysely } from 'kysely'
import type { App } from '../../../app.ts'
import { nextState, type Status, type Trigger } from '../../../contract/states.ts'
import { HOUR } from '../../../lib/clock.ts'
import { changeState, type StateFields } from '../../../store/unit-state.ts'
import type { Database } from '../../../store/db.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { ratesOf } from '../../billing/rates.ts'

/** How long a unit in `error` is kept for its owner to read why. */
const KEEP_ERRORS_MS = HOUR

export type TransitionOptions = {
  set?: StateFields
  /** When the machine was started, by the monotonic clock. */
  startedMs?: number
  /** When the run ended, where that was earlier than now: it is billed up to there. */
  endedAt?: Date
  /** Only if it is due to sleep: nobody has used it meanwhile. */
  ifDue?: boolean
  /** Only if nobody used the unit later than this. */
  ifUnusedSince?: Date
  /** A transaction to take part in. */
  db?: Kysely<Database>
}

/**
 * The unit as it is afterwards, or null: the table does not allow it from the state this record shows, or
 * somebody else changed it since it was read.
 */
export async function transition(
  app: App,
  unit: UnitRecord,
  trigger: Trigger,
  options: TransitionOptions = {},
): Promise<UnitRecord | null> {
  const to = nextState(unit, trigger)
  if (!to) return null
  // A transaction holds locks, and whoever does must not wait for the time. So begin and end runs outside.
  return options.db
    ? await move(app, unit, to, options)
    : await app.clock.withStableTime(() => move(app, unit, to, options))
}

async function move(
  app: App,
  unit: UnitRecord,
  to: Status,
  { set = {}, startedMs, endedAt, ifDue = false, ifUnusedSince, db = app.db }: TransitionOptions,
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
    ...(ifUnusedSince === undefined ? {} : { ifUnusedSince }),
    set: fields,
  })
  if (!changed) return null
  if (unit.state === 'running' && to.state !== 'running') app.unitEvents.emit('runEnded', unit.id)
  const moved = { ...unit, ...fields, ...to, revision: unit.revision + 1n, changedAt: at }
  if (moved.state === 'sleeping' && moved.frozen) app.frozenUnits.set(unit.id, moved)
  else app.frozenUnits.delete(unit.id)
  return moved
}

function earlier(at: Date, ms: number): Date {
  return new Date(at.getTime() - Math.round(ms))
}

/** What spec 2.1 ties to a state, whoever brings it about. */
function impliedBy({ state, frozen }: Status, at: Date): StateFields {
  switch (state) {
    // Its window begins, by what the row says of it then (unit-state.ts).
    case 'running':
      return { lastUsedAt: at, error: null }
    case 'error':
      return { sleepsAt: null, address: null, destroysAt: new Date(at.getTime() + KEEP_ERRORS_MS) }
    // Let go of before the machine is: another machine may be given it the moment after.
    case 'destroying':
      return { sleepsAt: null, address: null, destroysAt: null }
    // Whoever has kept it says so.
    case 'sleeping':
      return { sleepsAt: null, destroysAt: null, ...(frozen ? {} : { memoryOutcome: 'gone' }) }
    default:
      return { sleepsAt: null, destroysAt: null }
  }
}
