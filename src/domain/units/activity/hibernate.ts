// Freezes a unit when it falls asleep, and hibernates it later: the two tiers of sleep (design 3). A frozen machine
// costs memory and wakes in milliseconds; a hibernated one has ended and keeps its disk, and a checkpoint of its
// memory if its class supports that.

import type { App } from '../../../app.ts'
import { isEngineError } from '../../../engine/errors.ts'
import type { Step } from '../../../lib/saga.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { addUnitCheckpoint } from '../../../store/unit-checkpoints.ts'
import { isUnchanged, saveMemoryOutcome } from '../../../store/units.ts'
import { machineRef } from '../model/machine.ts'
import { keepsMemory } from '../model/memory.ts'
import { STOP_GRACE_MS } from '../lifecycle/run.ts'
import { stopStep, stopOperation } from '../stop.ts'
import { transition } from '../lifecycle/transition.ts'
import { runOperationHere, type OperationContext, type UnitOperation } from '../lifecycle/operation.ts'

// A later wake starts the unit, and the engine knows whether there is a checkpoint to restore.
const suspendStep: Step<OperationContext> = {
  name: 'suspend',
  run: async (context) => {
    const { app, unit } = context
    try {
      const isKept = await app.fleet.engineOf(unit).suspend(machineRef(unit), STOP_GRACE_MS)
      context.memoryOutcome = isKept ? 'kept' : keepsMemory(app, unit) ? 'refused' : 'gone'
    } catch (error) {
      // Without a machine there is nothing to end.
      if (!isEngineError(error, 'unknown_machine')) throw error
    }
  },
}

const freezeStep: Step<OperationContext> = {
  name: 'freeze',
  run: async (context) => {
    const { app, unit } = context
    app.activity.events.emit('freezing', unit.id)
    if (app.config.frozenForMs === 0) return await suspendStep.run(context)
    try {
      await app.fleet.engineOf(unit).freeze(machineRef(unit))
      context.frozen = true
    } catch (error) {
      if (isEngineError(error, 'engine_away')) throw error
      // The machine has ended or cannot be frozen: then it is stopped, which succeeds in both cases. Except if this
      // took so long that another process has put the unit to sleep and a call has woken it.
      if (await isUnchanged(app.db, unit)) await stopStep.run(context)
    }
  },
}

/** Takes a `stopping` unit that was idle to `sleeping`. */
export const sleepOperation: UnitOperation = {
  saga: { name: 'sleep', steps: [freezeStep] },
  onSuccess: async (context) => {
    const { app, unit, frozen, memoryOutcome } = context
    if (frozen) return void (await transition(app, unit, 'asleepFrozen'))
    await keepCheckpoint(context)
    await transition(app, unit, 'asleep', { set: { memoryOutcome } })
  },
  onFailure: stopOperation.onFailure,
}

/** Frees the memory of a frozen machine. A wake during this waits, then starts the unit again. */
export async function hibernateUnit(app: App, unit: UnitRecord): Promise<void> {
  const hibernated = await transition(app, unit, 'hibernated', { set: { memoryOutcome: null } })
  if (hibernated) await runOperationHere(app, hibernated, hibernateOperation)
}

// Nothing depends on the end of this operation except what is reported: the unit sleeps throughout, and the
// reconciler finds a machine that was not stopped.
export const hibernateOperation: UnitOperation = {
  saga: { name: 'hibernate', steps: [suspendStep] },
  onSuccess: async (context) => {
    const { app, unit, memoryOutcome } = context
    await keepCheckpoint(context)
    await saveMemoryOutcome(app.db, { ...unit, memoryOutcome })
  },
  onFailure: stopOperation.onFailure,
}

/** For the unit's time line (metrics-history.ts). Without memory to keep there was none. */
async function keepCheckpoint({ app, unit, memoryOutcome }: OperationContext): Promise<void> {
  if (memoryOutcome === 'gone') return
  const { id: unitId, generation } = unit
  await addUnitCheckpoint(app.db, { unitId, generation, at: app.clock.now(), kept: memoryOutcome === 'kept' })
}
