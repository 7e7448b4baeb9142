// Freezing a unit when it falls asleep, and hibernating it later: from the first tier of sleep to the second (design
// 3). A frozen machine costs memory and wakes in milliseconds; a hibernated one has ended and keeps its disk, with a
// checkpoint of its memory where its class can.

import type { App } from '../../../app.ts'
import { isEngineError } from '../../../engine/errors.ts'
import type { Step } from '../../../lib/saga.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { isUnchanged, saveMemoryOutcome } from '../../../store/units.ts'
import { machineRef } from '../model/machine.ts'
import { STOP_GRACE_MS } from '../lifecycle/run.ts'
import { stopStep, stopOperation } from '../stop.ts'
import { transition } from '../lifecycle/transition.ts'
import { runOperationHere, type OperationContext, type UnitOperation } from '../lifecycle/operation.ts'

// Whoever wakes the unit asks for a start, and the engine knows whether there is memory to go on with.
const suspendStep: Step<OperationContext> = {
  name: 'suspend',
  run: async (context) => {
    const { app, unit } = context
    try {
      const isKept = await app.engine.suspend(machineRef(unit), STOP_GRACE_MS)
      context.memoryOutcome = isKept ? 'kept' : app.keepsMemory.has(unit.isolation) ? 'refused' : 'gone'
    } catch (error) {
      // Without a machine there is nothing left to end.
      if (!isEngineError(error, 'unknown_machine')) throw error
    }
  },
}

const freezeStep: Step<OperationContext> = {
  name: 'freeze',
  run: async (context) => {
    const { app, unit } = context
    for (const tell of app.beforeFreeze) tell(unit.id)
    if (app.config.frozenForMs === 0) return await suspendStep.run(context)
    try {
      await app.engine.freeze(machineRef(unit))
      context.frozen = true
    } catch (error) {
      if (isEngineError(error, 'engine_away')) throw error
      // It has ended meanwhile, or cannot be frozen: then it is stopped, which succeeds in both cases. Unless
      // this took so long that somebody else has put it to sleep, and a call has woken it.
      if (await isUnchanged(app.db, unit)) await stopStep.run(context)
    }
  },
}

/** A `stopping` unit that was idle to `sleeping`. */
export const sleepOperation: UnitOperation = {
  saga: { name: 'sleep', steps: [freezeStep] },
  onSuccess: async ({ app, unit, frozen, memoryOutcome }) =>
    void (frozen
      ? await transition(app, unit, 'asleepFrozen')
      : await transition(app, unit, 'asleep', { set: { memoryOutcome } })),
  onFailure: stopOperation.onFailure,
}

/** Gives a frozen machine's memory back. A wake that comes meanwhile starts the unit anew once it is down. */
export async function hibernateUnit(app: App, unit: UnitRecord): Promise<void> {
  const hibernated = await transition(app, unit, 'hibernated', { set: { memoryOutcome: null } })
  if (hibernated) await runOperationHere(app, hibernated, hibernateOperation)
}

// Nothing is left to decide when it ends but what is told of it: the unit sleeps all the while, and a machine nobody
// stopped is found by the reconciler.
export const hibernateOperation: UnitOperation = {
  saga: { name: 'hibernate', steps: [suspendStep] },
  onSuccess: async ({ app, unit, memoryOutcome }) =>
    await saveMemoryOutcome(app.db, { ...unit, memoryOutcome }),
  onFailure: stopOperation.onFailure,
}
