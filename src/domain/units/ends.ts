// The background job that ends units whose time to live has passed, however much they are used. What it writes holds only
// if the unit was given no later end meanwhile.

import type { App } from '../../app.ts'
import { SECOND } from '../../lib/clock.ts'
import { completesWithin } from '../../lib/concurrency/completes-within.ts'
import { clearEnd, listUnitsDueToEnd } from '../../store/unit-ends.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { tellChanged } from '../transactions/changes.ts'
import { sleepOperation } from './activity/hibernate.ts'
import { destroyOperation } from './destroy.ts'
import { runOperation } from './lifecycle/operation.ts'
import { transition } from './lifecycle/transition.ts'
import { stopOperation } from './stop.ts'

const BATCH = 500
/** A machine that is slow to end must not keep the next ones. */
const LONGEST_WAIT_MS = 5 * SECOND

/** One run of the background job. Reads what is due from the store, so it may run twice at once. */
export async function endUnits(app: App): Promise<void> {
  const due = await listUnitsDueToEnd(app.db, { now: app.clock.now(), limit: BATCH })
  const ended = due.map((unit) =>
    endUnit(app, unit).catch((error: unknown) => {
      app.log.warn({ err: error, unitId: unit.id }, 'unit was not ended; will be retried')
    }),
  )
  await completesWithin(app.clock, LONGEST_WAIT_MS, Promise.all(ended))
}

async function endUnit(app: App, unit: UnitRecord): Promise<void> {
  if (unit.atEnd === 'destroy') {
    const destroying = await transition(app, unit, 'destroy', { ifEnded: true })
    if (destroying) await runOperation(app, destroying, destroyOperation)
    return
  }
  if (unit.state !== 'running') {
    if (await clearEnd(app.db, unit, app.clock.now())) tellChanged(app, unit.teamId)
    return
  }
  const set = { endsAt: null, timeToLive: null }
  const [trigger, operation] =
    unit.atEnd === 'stop' ? (['stop', stopOperation] as const) : (['idle', sleepOperation] as const)
  const stopping = await transition(app, unit, trigger, { ifEnded: true, set })
  if (stopping) await runOperation(app, stopping, operation)
}
