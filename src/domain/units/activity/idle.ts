// The loops of sleep: units nobody uses fall asleep, and those long asleep give their memory back.

import type { App } from '../../../app.ts'
import { SECOND } from '../../../lib/clock.ts'
import { completesWithin } from '../../../lib/concurrency/completes-within.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { listFrozenUnits, listUnitsDueToSleep } from '../../../store/units.ts'
import { isKeptAwake } from './kept-awake.ts'
import { hibernateUnit, sleepOperation } from './hibernate.ts'
import { transition } from '../lifecycle/transition.ts'
import { runOperation } from '../lifecycle/operation.ts'

const BATCH = 500

/** A loop's round. Reads what is due from the store, so it may run twice and in two processes. */
export async function sleepIdleUnits(app: App): Promise<void> {
  // Somebody may have tried to use them.
  if (app.outage.isOn) return
  const now = app.clock.now()
  const due = await listUnitsDueToSleep(app.db, { now, limit: BATCH })
  // A use that goes on and could not be recorded is a use all the same.
  const unused = due.filter(({ id }) => !app.usesPerUnit.has(id))
  await Promise.all(
    unused.map(async (unit) => {
      if (await isKeptAwake(app, unit)) return
      // A use between the reading and this moves sleepsAt, and then the unit stays awake.
      const stopping = await transition(app, unit, 'idle', { ifDue: true })
      // Not waited for: one machine that is slow to stop must not keep others awake.
      if (stopping)
        void runOperation(app, stopping, sleepOperation).catch(logFailure(app, unit, 'did not fall asleep'))
    }),
  )
}

/** A loop's round: frozen units past their time. */
export async function hibernateFrozenUnits(app: App): Promise<void> {
  const now = app.clock.now()
  const { frozenForMs } = app.config
  if (frozenForMs === null) return
  const since = new Date(now.getTime() - frozenForMs)
  for (const unit of await listFrozenUnits(app.db, { now, since, limit: BATCH })) void hibernate(app, unit)
}

/** Under pressure a few at a time: what they give back is seen in the next round. */
const AT_ONCE = 8
/** A machine that takes its time to stop does not keep the next ones from being asked. */
const GIVE_BACK_MS = 5 * SECOND

/** A loop's round: the longest asleep of all, as long as memory is short for what is to start (cold-starts.ts). */
export async function giveMemoryBack(app: App): Promise<void> {
  if (!(await app.coldStarts.isOverloaded())) return
  const longest = await listFrozenUnits(app.db, { now: app.clock.now(), since: null, limit: AT_ONCE })
  await completesWithin(app.clock, GIVE_BACK_MS, Promise.all(longest.map((unit) => hibernate(app, unit))))
}

async function hibernate(app: App, unit: UnitRecord): Promise<void> {
  await hibernateUnit(app, unit).catch(logFailure(app, unit, 'was not hibernated'))
}

function logFailure(app: App, { id }: UnitRecord, what: string): (error: unknown) => void {
  return (error) => app.log.warn({ err: error, unitId: id }, `a unit ${what} at once`)
}
