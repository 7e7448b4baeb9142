// The only way a unit's state changes: the table of contract/states.ts says whether it may, a
// compare-and-set in the database says who did it.

import type { Kysely } from 'kysely'
import type { App } from '../../app.ts'
import { nextState, type Trigger } from '../../contract/states.ts'
import { HOUR } from '../../lib/clock.ts'
import { changeState, type StateFields } from '../../store/unit-state.ts'
import type { Database } from '../../store/db.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { priceNanoCentsPerHour } from '../billing/prices.ts'

/** How long a unit in `error` is kept for its owner to read why. */
const KEEP_ERRORS_MS = HOUR

export type TransitionOptions = {
  set?: StateFields
  /** Where the billed run begins or ends, when that was earlier than now. */
  runAt?: Date
  /** Only if nobody used the unit so that it is due to sleep later than this. */
  ifSleepsBy?: Date
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
  { set = {}, runAt, ifSleepsBy, ifUnusedSince, db = app.db }: TransitionOptions = {},
): Promise<UnitRecord | null> {
  const to = nextState(unit, trigger)
  if (!to) return null
  const at = app.clock.now()
  const fields: StateFields = { ...impliedBy(to.state, at), ...set }
  const changed = await changeState(db, {
    id: unit.id,
    from: { state: unit.state, generation: unit.generation },
    to,
    at,
    ...(runAt === undefined ? {} : { runAt }),
    ...(ifSleepsBy === undefined ? {} : { ifSleepsBy }),
    ...(ifUnusedSince === undefined ? {} : { ifUnusedSince }),
    priceNanoCentsPerHour: priceNanoCentsPerHour[unit.size],
    set: fields,
  })
  return changed ? { ...unit, ...fields, ...to, changedAt: at } : null
}

/** What spec 2.1 ties to a state, whoever brings it about. */
function impliedBy(to: UnitRecord['state'], at: Date): StateFields {
  switch (to) {
    // Its window begins, by what the row says of it then (unit-state.ts).
    case 'running':
      return { lastUsedAt: at, error: null }
    case 'error':
      return { sleepsAt: null, address: null, destroysAt: new Date(at.getTime() + KEEP_ERRORS_MS) }
    // Let go of before the machine is: another machine may be given it the moment after.
    case 'destroying':
      return { sleepsAt: null, address: null, destroysAt: null }
    default:
      return { sleepsAt: null, destroysAt: null }
  }
}
