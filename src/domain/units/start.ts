// Starting a stopped unit and waking a sleeping one: the same steps, told apart by where they lead when
// they fail. A unit that has run before never ends in `error`: its disk is untouched and it can be tried
// again (design 4).

import type { App } from '../../app.ts'
import type { Unit } from '../../contract/unit.ts'
import { nextState } from '../../contract/states.ts'
import { runSteps, type Step, StepFailed, undoSteps } from '../../lib/saga.ts'
import { lockTeam } from '../../store/stacks.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { countLiveUnits } from '../../store/units.ts'
import type { Caller } from '../credentials/caller.ts'
import { checkConcurrency } from '../policies/check.ts'
import { engineFailure, failureText, notPossibleNow } from './failures.ts'
import { getRecord } from './get.ts'
import { finishRun, logUndo, readyStep, type RunContext, startStep } from './run.ts'
import { getSettledUnit } from './settled.ts'
import { showUnit } from './show.ts'
import { transition } from './transition.ts'
import { recordUse } from './use.ts'

const steps: Step<RunContext>[] = [startStep, readyStep]

/** Starts a stopped unit, wakes a sleeping one, and is a use of a running one. */
export async function startUnit(app: App, caller: Caller, id: string): Promise<Unit> {
  const unit = await getSettledUnit(app, caller, id)
  switch (unit.state) {
    case 'running':
      await recordUse(app, unit)
      break
    case 'sleeping':
      await wakeUnit(app, caller, unit)
      break
    default: {
      const starting = await admit(app, caller, unit, 'start')
      if (!starting) throw notPossibleNow(await getRecord(app, caller, id), 'it cannot be started')
      await driveStart(app, starting)
    }
  }
  return showUnit(await getRecord(app, caller, id))
}

/** Of several who wake it at once one does; the others find it starting and wait with it. */
export async function wakeUnit(app: App, caller: Caller, unit: UnitRecord): Promise<void> {
  const starting = await admit(app, caller, unit, 'wake')
  if (starting) await driveStart(app, starting)
}

/**
 * Counts and changes state in one transaction, so that at no instant more run than the policy allows. From
 * here on the unit counts against the credential that set it running.
 */
async function admit(
  app: App,
  caller: Caller,
  unit: UnitRecord,
  trigger: 'start' | 'wake',
): Promise<UnitRecord | null> {
  if (nextState(unit, trigger) === null) return null
  return await app.db.transaction().execute(async (db) => {
    await lockTeam(db, unit.teamId)
    checkConcurrency(caller.policy, await countLiveUnits(db, caller.credentialId))
    return await transition(app, unit, trigger, { db, set: { heldBy: caller.credentialId } })
  })
}

/** Takes a `starting` unit on to `running`, or back to where it came from, which throws. */
export async function driveStart(app: App, unit: UnitRecord): Promise<void> {
  await app.drive(`start:${unit.id}`, async () => {
    const context: RunContext = { app, unit, startedAt: null, ended: false }
    try {
      await runSteps(steps, context)
    } catch (failed) {
      if (!(failed instanceof StepFailed)) throw failed
      return await giveUp(context, failed)
    }
    await finishRun(context)
  })
}

async function giveUp(context: RunContext, failed: StepFailed<RunContext>): Promise<void> {
  const { app, unit } = context
  app.log.warn({ err: failed.cause, unitId: unit.id, step: failed.step }, 'a unit did not start')
  // State first: a process that is killed while its unit still counts as starting would look like an exit.
  const back = nextState(unit, 'startFailed') ? 'startFailed' : 'wakeFailed'
  const set = { error: failureText(failed.cause, unit) }
  if (!(await transition(app, unit, back, { set }))) return
  logUndo(app, unit, await undoSteps(failed.reached, context))
  throw engineFailure(failed.cause, unit)
}
