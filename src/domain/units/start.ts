// Starting a stopped unit.

import type { App } from '../../app.ts'
import { nextState } from '../../contract/states.ts'
import type { Unit } from '../../contract/unit.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import type { Caller } from '../credentials/caller.ts'
import { notPossibleNow } from './lifecycle/failures.ts'
import { getRecord } from './get.ts'
import { admitUnit } from './admission/admit-unit.ts'
import { startOperation } from './lifecycle/run.ts'
import { retryOnConflict } from './lifecycle/retry-on-conflict.ts'
import { waitUntilStable } from './lifecycle/wait-until-stable.ts'
import { toUnit } from './model/to-unit.ts'
import { recordUse } from './activity/record-use.ts'
import { wakeUnit } from './activity/wake.ts'
import { runOperation } from './lifecycle/operation.ts'

/** Starts a stopped unit, wakes a sleeping one, and is a use of a running one. */
export async function startUnit(app: App, caller: Caller, id: string): Promise<Unit> {
  await retryOnConflict(async () => {
    const unit = await waitUntilStable(app, caller, id)
    return (await bringUp(app, caller, unit)) || null
  })
  const now = await getRecord(app, caller, id)
  if (isGone(now)) throw notPossibleNow(now, 'it cannot be started')
  return toUnit(app, now)
}

/** Returns false if the unit has changed state: read it again. */
async function bringUp(app: App, caller: Caller, unit: UnitRecord): Promise<boolean> {
  if (unit.state === 'running') return await recordUse(app, unit)
  if (unit.state === 'sleeping') {
    await wakeUnit(app, caller, unit)
    return false
  }
  if (nextState(unit, 'start') === null) throw notPossibleNow(unit, 'it cannot be started')
  const starting = await admitUnit(app, caller, unit, 'start')
  if (starting) await runOperation(app, starting, startOperation)
  return starting !== null
}

/** Another call has destroyed it. */
function isGone({ state }: UnitRecord): boolean {
  return state === 'destroying' || state === 'destroyed'
}
