// Stopping a unit. Its disk, volume and address stay.

import type { App } from '../../app.ts'
import type { Unit } from '../../contract/unit.ts'
import { isEngineError } from '../../engine/errors.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import type { Caller } from '../credentials/caller.ts'
import { engineFailure, notPossibleNow } from './failures.ts'
import { getRecord } from './get.ts'
import { machineRef } from './machine.ts'
import { STOP_GRACE_MS } from './run.ts'
import { getSettledUnit } from './settled.ts'
import { showUnit } from './show.ts'
import { transition } from './transition.ts'

/** Stopping a stopped unit succeeds, so that the call can be repeated. */
export async function stopUnit(app: App, caller: Caller, id: string): Promise<Unit> {
  const unit = await getSettledUnit(app, caller, id)
  const stopping = await transition(app, unit, 'stop')
  if (stopping) await driveStop(app, stopping)
  const now = await getSettledUnit(app, caller, id)
  if (now.state !== 'stopped') throw notPossibleNow(now, 'it cannot be stopped')
  return showUnit(await getRecord(app, caller, id))
}

/** Takes a `stopping` unit on to where its reason leads: asleep when it was idle, else stopped. */
export async function driveStop(app: App, unit: UnitRecord): Promise<void> {
  await app.drive(`stop:${unit.id}`, async () => {
    try {
      await app.engine.stop(machineRef(unit), STOP_GRACE_MS)
    } catch (error) {
      // Without a machine there is nothing left to stop.
      if (!isEngineError(error, 'unknown_machine')) throw engineFailure(error, unit)
    }
    await transition(app, unit, unit.stoppedReason === 'idle' ? 'asleep' : 'stopped')
  })
}
