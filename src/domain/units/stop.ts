// Stops a unit. Its disk, volume and address stay.

import type { App } from '../../app.ts'
import { nextState } from '../../contract/states.ts'
import type { Unit } from '../../contract/unit.ts'
import { isEngineError } from '../../engine/errors.ts'
import type { Step } from '../../lib/saga.ts'
import type { Caller } from '../credentials/caller.ts'
import { engineFailure, notPossibleNow } from './lifecycle/failures.ts'
import { getRecord } from './get.ts'
import { machineRef } from './model/machine.ts'
import { STOP_GRACE_MS } from './lifecycle/run.ts'
import { retryOnConflict } from './lifecycle/retry-on-conflict.ts'
import { waitUntilStable } from './lifecycle/wait-until-stable.ts'
import { toUnit } from './model/to-unit.ts'
import { transition } from './lifecycle/transition.ts'
import { runOperation, type OperationContext, type UnitOperation } from './lifecycle/operation.ts'

const REFUSED = 'it cannot be stopped'

export const stopStep: Step<OperationContext> = {
  name: 'stop',
  run: async ({ app, unit }) => {
    try {
      await app.fleet.engineOf(unit).stop(machineRef(unit), STOP_GRACE_MS)
    } catch (error) {
      // Without a machine there is nothing to stop.
      if (!isEngineError(error, 'unknown_machine')) throw error
    }
  },
}

/** Takes a `stopping` unit to `stopped`. A stop that fails is resumed by the reconciler. */
export const stopOperation: UnitOperation = {
  saga: { name: 'stop', steps: [stopStep] },
  onSuccess: async ({ app, unit }) => void (await transition(app, unit, 'stopped')),
  onFailure: async ({ unit }, { cause }) => {
    throw engineFailure(cause, unit)
  },
}

/** Stopping a stopped unit succeeds, so that the call can be repeated; a sleeping one does not wake any more. */
export async function stopUnit(app: App, caller: Caller, id: string): Promise<Unit> {
  const stopped = await retryOnConflict(async () => {
    const unit = await waitUntilStable(app, caller, id)
    if (unit.state === 'stopped') return unit
    if (nextState(unit, 'stop') === null) throw notPossibleNow(unit, REFUSED)
    const stopping = await transition(app, unit, 'stop')
    if (!stopping) return null
    await runOperation(app, stopping, stopOperation)
    const now = await getRecord(app, caller, id)
    // A start since then came later, and is not undone.
    return ['destroying', 'destroyed'].includes(now.state) ? null : now
  })
  if (stopped === null) throw notPossibleNow(await getRecord(app, caller, id), REFUSED)
  return toUnit(app, stopped)
}
