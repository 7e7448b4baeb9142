// Falling asleep, and from the first tier of sleep to the second (design 3): the machine stands still at
// first, which costs memory and wakes in milliseconds; later it ends and keeps its disk,
// with its memory where its class can.

import type { App } from '../../../app.ts'
import { isEngineError } from '../../../engine/errors.ts'
import type { Step } from '../../../lib/saga.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { isUnchanged } from '../../../store/units.ts'
import { machineRef } from '../model/machine.ts'
import { STOP_GRACE_MS } from '../lifecycle/run.ts'
import { stopStep, stopWay } from '../stop.ts'
import { transition } from '../lifecycle/transition.ts'
import { walkAlone, type Walk, type Way } from '../lifecycle/operation.ts'

// Whoever wakes the unit asks for a start, and the engine knows whether there is memory to go on with.
const suspendStep: Step<Walk> = {
  name: 'suspend',
  run: async ({ app, unit }) => {
    try {
      await app.engine.suspend(machineRef(unit), STOP_GRACE_MS)
    } catch (error) {
      // Without a machine there is nothing left to end.
      if (!isEngineError(error, 'unknown_machine')) throw error
    }
  },
}

const freezeStep: Step<Walk> = {
  name: 'freeze',
  run: async (context) => {
    const { app, unit } = context
    for (const tell of app.fallingAsleep) tell(unit.id)
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
export const sleepWay: Way = {
  saga: { name: 'sleep', steps: [freezeStep] },
  arrive: async ({ app, unit, frozen }) =>
    void (await transition(app, unit, frozen ? 'asleepFrozen' : 'asleep')),
  giveUp: stopWay.giveUp,
}

/** Gives a frozen machine's memory back. A wake that comes meanwhile starts the unit anew once it is down. */
export async function coolUnit(app: App, unit: UnitRecord): Promise<void> {
  const cooled = await transition(app, unit, 'cooled')
  if (cooled) await walkAlone(app, cooled, coolWay)
}

// Nothing is left to decide when it ends: the unit sleeps all the while, and a machine nobody stopped is
// found by the reconciler.
export const coolWay: Way = {
  saga: { name: 'cool', steps: [suspendStep] },
  arrive: async () => {},
  giveUp: stopWay.giveUp,
}
