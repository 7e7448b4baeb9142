// The loops of sleep: units nobody uses fall asleep, and those long asleep give their memory back.

import type { App } from '../../app.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { listFrozenUnits, listUnitsDueToSleep } from '../../store/units.ts'
import { coolUnit, sleepWay } from './fall-asleep.ts'
import { transition } from './transition.ts'
import { walk } from './way.ts'

const BATCH = 500

/** A loop's round. Reads what is due from the store, so it may run twice and in two processes. */
export async function sleepIdleUnits(app: App): Promise<void> {
  // Somebody may have tried to use them.
  if (app.outage.isOn) return
  const now = app.clock.now()
  const due = await listUnitsDueToSleep(app.db, { now, limit: BATCH })
  await Promise.all(
    due.map(async (unit) => {
      // A use between the reading and this moves sleepsAt, and then the unit stays awake.
      const stopping = await transition(app, unit, 'idle', { ifDue: true })
      // Not waited for: one machine that is slow to stop must not keep others awake.
      if (stopping) void walk(app, stopping, sleepWay).catch(logFailure(app, unit, 'did not fall asleep'))
    }),
  )
}

/** A loop's round: frozen units past their time, or the longest asleep of all when memory runs short. */
export async function coolFrozenUnits(app: App): Promise<void> {
  const now = app.clock.now()
  const { frozenForMs } = app.config
  const since = frozenForMs === Infinity ? null : new Date(now.getTime() - frozenForMs)
  const overdue = since ? await listFrozenUnits(app.db, { now, since, limit: BATCH }) : []
  const { availableMemoryMb } = await app.engine.capacity()
  const isShort = availableMemoryMb < app.config.memoryReserveMb
  const pressed = isShort ? await listFrozenUnits(app.db, { now, since: null, limit: AT_ONCE }) : []
  const units = new Map([...overdue, ...pressed].map((unit) => [unit.id, unit]))
  for (const unit of units.values()) void coolUnit(app, unit).catch(logFailure(app, unit, 'was not cooled'))
}

/** Under pressure a few at a time: what they give back is seen in the next round. */
const AT_ONCE = 8

function logFailure(app: App, { id }: UnitRecord, what: string): (error: unknown) => void {
  return (error) => app.log.warn({ err: error, unitId: id }, `a unit ${what} at once`)
}
