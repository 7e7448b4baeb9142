// A lifecycle operation takes a unit from one state to another: a saga, what happens when it succeeds, and what becomes of
// the unit when it fails. Every state change that needs work outside the database is one. It is started by a call or a
// background job, and resumed by the reconciler, which finds the unit in a transitional state.

import type { App } from '../../../app.ts'
import { limits } from '../../../contract/limits.ts'
import { isTransitional, type UnitState } from '../../../contract/states.ts'
import { isEngineError } from '../../../engine/errors.ts'
import { MINUTE, SECOND } from '../../../lib/clock.ts'
import type { Failpoints } from '../../../lib/failpoints.ts'
import { runSaga, type Saga, type Step, StepFailed, undoSaga } from '../../../lib/saga.ts'
import { type StepTimes, timeSteps } from '../../../lib/slow-steps.ts'
import { isOutage } from '../../../store/outage.ts'
import type { MemoryOutcome, UnitRecord } from '../../../store/unit-record.ts'
import { saveProgress } from '../../../store/units.ts'
import { forgetCreation, noteStep } from './creation-progress.ts'

export type OperationContext = {
  app: App
  /** The unit as the operation has changed it so far: its address, and its generation when a new run was needed. */
  unit: UnitRecord
  /** The image that was pulled for it. */
  imageDigest: string | null
  /** When the machine was started, by the monotonic clock, as far as this process knows. */
  startedMs: number | null
  /** The run was restored with the memory of an earlier one. */
  resumed: boolean
  /** What runs it, as its host says; null: it does not, or it was not asked yet. */
  runtime: string | null
  /** A sentence for the log of its next run. */
  note: string | null
  /** The process exited by itself before it was ready. The exit is recorded; the operation has not failed. */
  ended: boolean
  /** The machine was frozen rather than stopped. */
  frozen: boolean
  /** What became of its memory where it was ended in its sleep. */
  memoryOutcome: MemoryOutcome
  /** Work of the first step that was started ahead of the state change; null once it has been awaited. */
  begun: Promise<void> | null
  times: StepTimes
}

export type UnitOperation = {
  saga: Saga<OperationContext>
  onSuccess: (context: OperationContext) => Promise<void>
  /** Returns the unit as it is now elsewhere, where the operation begins again: then only how that ends counts. Null: it has failed. */
  moveOn?: (context: OperationContext, failed: StepFailed<OperationContext>) => Promise<UnitRecord | null>
  /** Decides which state the unit is left in. Throws the error for the caller. */
  onFailure: (context: OperationContext, failed: StepFailed<OperationContext>) => Promise<void>
}

/** Another operation has taken over the unit: it is being stopped or destroyed. */
class Superseded extends Error {}

/** Runs the operation, or joins the run in progress in this process. Rejects with the error for the caller. */
export async function runOperation(
  app: App,
  unit: UnitRecord,
  operation: UnitOperation,
  begun: Promise<void> | null = null,
): Promise<void> {
  await app.activity.operations.run(operationKey(unit), timeoutMs[unit.state] ?? MINUTE, () =>
    runOperationHere(app, unit, operation, begun),
  )
}

/** The operation in progress on the unit in this process; null when there is none. */
export function findOperation(app: App, unit: UnitRecord): Promise<void> | null {
  const isCopied = unit.state === 'creating' && unit.forkId !== null
  return app.activity.operations.find(isCopied ? forkKey(unit.forkId ?? '') : operationKey(unit))
}

export function newOperationContext(app: App, unit: UnitRecord): OperationContext {
  return {
    app,
    unit,
    imageDigest: null,
    startedMs: null,
    resumed: false,
    runtime: null,
    note: null,
    ended: false,
    frozen: false,
    memoryOutcome: 'gone',
    begun: null,
    times: timeSteps(app.clock),
  }
}

/** Runs the operation without joining another run of it: for operations that no caller waits for. */
export async function runOperationHere(
  app: App,
  unit: UnitRecord,
  operation: UnitOperation,
  begun: Promise<void> | null = null,
): Promise<void> {
  const context = { ...newOperationContext(app, unit), begun }
  const journal = {
    done: unit.progress?.done ?? [],
    save: async (done: string[]) => {
      context.unit = { ...context.unit, progress: { ...context.unit.progress, done } }
      if (!(await saveProgress(app.db, context.unit))) throw new Superseded()
    },
  }
  const { name } = operation.saga
  const failed = await retryWhileEngineAway<OperationContext>(app, () =>
    runSaga(operation.saga, context, { journal, failpoints: timed(app, context) }),
  ).finally(() => {
    forgetCreation(app, context.unit)
    reportIfSlow(context, name)
  })
  if (!failed) {
    await operation.onSuccess(context)
    return reportOperation(context, name, 'success')
  }
  // Without the database the result cannot be recorded. The operation is resumed when it is back.
  if (isOutage(failed.cause)) throw failed.cause
  const moved = await operation.moveOn?.(context, failed)
  if (moved) return await runOperationHere(app, moved, operation)
  if (!(failed.cause instanceof Superseded)) reportOperation(context, name, 'failure')
  await operation.onFailure(context, failed)
}

/** Every step goes through the failpoints, so its beginning is told and its time is taken there. */
function timed(app: App, context: OperationContext): Failpoints {
  return {
    effect: (name, work) => {
      noteStep(app, context.unit, name)
      return context.times.measure(name, () => app.failpoints.effect(name, work))
    },
  }
}

/** A stop may wait for a process that does not end, and says nothing of this host. */
function reportIfSlow({ app, unit, times }: OperationContext, operation: string): void {
  if (leadsToRun(unit)) times.end(app.log, 'unit was slow to run', { unitId: unit.id, operation })
}

function leadsToRun({ state }: UnitRecord): boolean {
  return state === 'creating' || state === 'starting'
}

/** Reports the duration since the state change, whichever process ran the operation. */
export function reportOperation(
  { app, unit, resumed, ended }: OperationContext,
  name: string,
  result: 'success' | 'failure',
): void {
  const { state, stoppedReason, frozen, isolation, changedAt } = unit
  if (ended || !isTransitional(state)) return
  const isWake = name === 'start' && stoppedReason !== 'user' && stoppedReason !== 'exited'
  const tier = leadsToRun(unit) ? (resumed ? 'memory' : frozen ? 'frozen' : 'cold') : 'none'
  const ms = Math.max(0, app.clock.now().getTime() - changedAt.getTime())
  app.observer.operationEnded({ operation: isWake ? 'wake' : name, isolation, tier, result, ms })
}

/** Repeats the attempt while the engine restarts, which takes a second or two; steps are idempotent. Returns the failure, or null on success. */
export async function retryWhileEngineAway<Context>(
  app: App,
  attempt: () => Promise<void>,
): Promise<StepFailed<Context> | null> {
  let deadlineMs: number | null = null
  for (;;) {
    try {
      await attempt()
      return null
    } catch (failed) {
      if (!(failed instanceof StepFailed)) throw failed
      if (!isEngineError(failed.cause, 'engine_away')) return failed
      // Counted from the first failed call, since the step may have run for long before.
      deadlineMs ??= app.clock.monotonicMs() + ENGINE_BACK_MS
      if (app.clock.monotonicMs() >= deadlineMs) return failed
    }
    await app.clock.sleep(ENGINE_PAUSE_MS)
  }
}

const ENGINE_BACK_MS = 20 * SECOND
const ENGINE_PAUSE_MS = 250

/** Undoes the attempted steps. What cannot be undone is left to the reconciler, which removes unwanted machines. */
export async function undoSteps(
  operation: UnitOperation,
  context: OperationContext,
  attempted: readonly Step<OperationContext>[],
): Promise<void> {
  const { app, unit } = context
  const problems = await undoSaga(operation.saga, context, { attempted, failpoints: app.failpoints })
  for (const err of problems) app.log.warn({ err, unitId: unit.id }, 'undo of a failed operation step failed')
}

/** An operation that takes longer is considered hung and is started again beside it; steps are idempotent. */
const timeoutMs: Partial<Record<UnitState, number>> = {
  // A first pull or build of its image, and its healthcheck.
  creating: 40 * MINUTE + limits.healthcheckTimeoutMs.max,
  starting: 5 * MINUTE + limits.healthcheckTimeoutMs.max,
  stopping: 8 * MINUTE,
  destroying: 3 * MINUTE,
}

/** Copies in creation belong to the operation of their fork. */
export function forkKey(forkId: string): string {
  return `operation ${forkId}`
}

/** The revision is included because a failed start may still be undone when the next one begins. */
function operationKey({ id, revision }: UnitRecord): string {
  return `operation ${id} ${revision}`
}
