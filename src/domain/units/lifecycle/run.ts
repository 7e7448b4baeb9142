// A run of a unit's machine: the steps that start it, shared by create, start and wake, and the operations of start
// and restart.

import { nextState } from '../../../contract/states.ts'
import type { MachineRef, RunSpec } from '../../../engine/engine.ts'
import { EngineError, isEngineError } from '../../../engine/errors.ts'
import type { App } from '../../../app.ts'
import { SECOND } from '../../../lib/clock.ts'
import type { Step } from '../../../lib/saga.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { findUnitOfAnyTeam } from '../../../store/units.ts'
import { admitColdStart } from './cold-starts.ts'
import { noteStartedWithEgress } from '../../egress/apply.ts'
import { machineEgress } from '../../egress/machine-egress.ts'
import { openBootFiles } from '../model/boot-files.ts'
import { renderEnv } from '../model/env.ts'
import { recordEndOf } from './exits.ts'
import { engineFailure, failureText } from './failures.ts'
import { machineRef } from '../model/machine.ts'
import { searchDomain } from '../model/names.ts'
import { becomesReady } from './readiness.ts'
import { transition } from './transition.ts'
import { undoSteps, type OperationContext, type UnitOperation } from './operation.ts'

/** The time between SIGTERM and SIGKILL. */
export const STOP_GRACE_MS = 10_000

// Without a checkpoint in the row: a resumed operation asks the engine whether the run exists.
export const startStep: Step<OperationContext> = {
  name: 'start',
  run: async (context) => {
    const { app, unit, times } = context
    // The rest of this step's time is the wait for admission.
    await admitColdStart(app, unit, () => times.measure('start.admitted', () => startMachine(context)))
    context.startedMs ??= app.clock.monotonicMs()
  },
  undo: async ({ app, unit }) => await app.fleet.engineOf(unit).stop(machineRef(unit), 0),
}

async function startMachine(context: OperationContext): Promise<void> {
  const { app } = context
  const { note } = context
  const spec = { ...(await runSpec(app, context.unit)), ...(note === null ? {} : { note }) }
  const start = async () => {
    const { resumed, runtime } = await app.fleet.engineOf(context.unit).start(machineRef(context.unit), spec)
    Object.assign(context, { resumed, runtime: runtime ?? null })
  }
  try {
    await start()
  } catch (error) {
    if (!isEngineError(error, 'run_lost')) throw error
    await beginAgain(context, error)
    await start()
  }
}

/** Begins another run in place of the one that failed. Throws that failure if the unit is not to run any more. */
async function beginAgain(context: OperationContext, because: unknown): Promise<void> {
  const again = await transition(context.app, context.unit, 'again')
  if (!again) throw because
  context.unit = again
  context.startedMs = null
}

export const readyStep: Step<OperationContext> = {
  name: 'ready',
  run: async (context) => {
    const isReady = context.resumed
      ? await becomesReadyAgain(context)
      : await becomesReady(context.app, context.unit)
    if (isReady) return
    const { app, unit } = context
    context.ended = true
    await recordEndOf(app, unit)
    const now = await findUnitOfAnyTeam(app.db, { id: unit.id, now: app.clock.now() })
    if (now?.state !== unit.state) return
    throw new EngineError(
      'start_failed',
      'The process of the unit ended before it was ready, and the host does not know how.',
    )
  },
}

/** For a process restored with its memory, which was ready before. */
const READY_AGAIN_MS = 10 * SECOND

/** A restored process that is not ready soon is started again, since memory is never relied on. */
async function becomesReadyAgain(context: OperationContext): Promise<boolean> {
  const { app, unit } = context
  try {
    return await becomesReady(app, unit, READY_AGAIN_MS)
  } catch (error) {
    if (!isEngineError(error, 'start_failed')) throw error
    app.log.warn({ unitId: unit.id }, 'unit restored from memory is not ready; it is cold started')
    await beginAgain(context, error)
    context.note = `The saved memory is not used: with it, the unit was not ready within ${READY_AGAIN_MS / SECOND} s. The unit starts from its disk.`
    await startStep.run(context)
    return await becomesReady(app, context.unit)
  }
}

// Ends the previous run like a stop. After a crash the operation is resumed as a start, which kills what is left.
const endStep: Step<OperationContext> = {
  name: 'end',
  run: async ({ app, unit }) => await app.fleet.engineOf(unit).stop(runBefore(unit), STOP_GRACE_MS),
  // Nothing of the run may be left, because the unit then goes to sleep.
  undo: async ({ app, unit }) => await app.fleet.engineOf(unit).stop(runBefore(unit), 0),
}

function runBefore({ id, generation }: UnitRecord): MachineRef {
  return { id, generation: generation - 1 }
}

/**
 * Takes a `starting` unit to `running`. A unit that has run before never ends in `error`: if it does not start, it
 * returns to stopped or asleep with its disk untouched, and can be tried again (design 4).
 */
function runAgain(name: string, steps: Step<OperationContext>[]): UnitOperation {
  const operation: UnitOperation = {
    saga: { name, steps },
    onSuccess: async (context) => void (await becomeRunning(context)),
    onFailure: async (context, failed) => {
      const { app, unit } = context
      app.log.warn({ err: failed.cause, unitId: unit.id, step: failed.step }, 'unit did not start')
      // State first: a killed process whose unit is still `starting` would look like an exit.
      const back = nextState(unit, 'startFailed') ? 'startFailed' : 'wakeFailed'
      const set = { error: failureText(failed.cause, unit) }
      if (!(await transition(app, unit, back, { set }))) return
      await undoSteps(operation, context, failed.attempted)
      throw engineFailure(failed.cause, unit)
    },
  }
  return operation
}

export const startOperation = runAgain('start', [startStep, readyStep])
/** For a running unit that must pick up changes. */
export const restartOperation = runAgain('restart', [endStep, startStep, readyStep])

/**
 * Makes the unit `running`, unless its process has ended or the unit has changed state in the meantime. Returns whether it
 * did.
 */
export async function becomeRunning({
  app,
  unit,
  startedMs,
  ended,
  runtime,
}: OperationContext): Promise<boolean> {
  if (ended || startedMs === null) return false
  const running = await transition(app, unit, 'ready', { startedMs, set: { runtime } })
  await noteStartedWithEgress(app, unit)
  return running !== null
}

/** Returns the spec of a start, from the unit's row and its secrets as they are now. */
export async function runSpec(app: App, unit: UnitRecord): Promise<RunSpec> {
  const [env, files, egress] = await Promise.all([
    renderEnv(app, unit),
    openBootFiles(app, unit),
    machineEgress(app, unit),
  ])
  return {
    hostname: unit.name,
    entrypoint: unit.spec.entrypoint,
    cmd: unit.spec.cmd,
    env,
    files,
    searchDomain: searchDomain(unit.stackName),
    egress,
    probed: Boolean(unit.spec.healthcheck),
  }
}
