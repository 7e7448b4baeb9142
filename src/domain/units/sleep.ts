// Putting idle units to sleep: the machine is stopped and its disk kept; the next use wakes it.

import type { App } from '../../app.ts'
import { listUnitsDueToSleep } from '../../store/units.ts'
import { driveStop } from './stop.ts'
import { transition } from './transition.ts'

const BATCH = 500

/** A loop's round. Reads what is due from the store, so it may run twice and in two processes. */
export async function sleepIdleUnits(app: App): Promise<void> {
  const now = app.clock.now()
  const due = await listUnitsDueToSleep(app.db, { now, limit: BATCH })
  await Promise.all(
    due.map(async (unit) => {
      // A use between the reading and this moves sleepsAt, and then the unit stays awake.
      const stopping = await transition(app, unit, 'idle', { ifSleepsBy: now })
      if (!stopping) return
      // Not waited for: one machine that is slow to stop must not keep others awake.
      driveStop(app, stopping).catch((error: unknown) => {
        app.log.warn({ err: error, unitId: unit.id }, 'a unit did not fall asleep at once')
      })
    }),
  )
}
