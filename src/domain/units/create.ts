// POST /v1/units: checks, reserves in one transaction, then starts the machines in idempotent steps (design 4). Only
// a first create can end in `error`: everything of it on the host is undone, and the row is kept for an hour so that
// its owner can read why. If one create makes several units and one fails, the others are destroyed too
// (create-group.ts).

import type { App } from '../../app.ts'
import type { Create, CreateFromSpec } from '../../contract/create.ts'
import { type AppError, invalidState, providerError } from '../../contract/errors.ts'
import { parseImageReference } from '../../contract/image-reference.ts'
import type { RunResult } from '../../contract/run-result.ts'
import type { LogLine } from '../../engine/engine.ts'
import { isEngineError } from '../../engine/errors.ts'
import { allSettled } from '../../lib/concurrency/all-settled.ts'
import { completesWithin } from '../../lib/concurrency/completes-within.ts'
import type { Step } from '../../lib/saga.ts'
import { abandonStack, deleteStackOfLastUnit, lockStack } from '../../store/stacks.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { findUnitOfAnyTeam } from '../../store/units.ts'
import { moveToOtherHost, NoRoom, noRoom } from './create-elsewhere.ts'
import { costLine } from '../billing/cost-line.ts'
import type { Caller } from '../credentials/caller.ts'
import type { Once } from '../idempotency/once.ts'
import { failureText } from './lifecycle/failures.ts'
import { getRecord } from './get.ts'
import { machineSizes } from './model/machine.ts'
import { destroyCreateGroup, waitForCreateGroup } from './create-group.ts'
import { type CreatePlan, planOfSpec } from './model/plan.ts'
import { keptOfCreateSchema, reserveUnits, outputsNow } from './admission/reserve.ts'
import { becomeRunning, readyStep, startStep } from './lifecycle/run.ts'
import { waitUntilStable } from './lifecycle/wait-until-stable.ts'
import { keepLog, readLastLines } from './model/kept-log.ts'
import { toUnit } from './model/to-unit.ts'
import { transition } from './lifecycle/transition.ts'
import { undoSteps, runOperation, type OperationContext, type UnitOperation } from './lifecycle/operation.ts'
import { inTransaction } from '../transactions/transactions.ts'

const imageStep: Step<OperationContext> = {
  name: 'image',
  run: async (context) => {
    const { app, unit } = context
    const { id, teamId, networkGroup, image } = unit
    const { canonical } = parseImageReference(image)
    context.imageDigest = (
      await app.fleet.engineOf(unit).pull(canonical, { id, teamId, networkGroup })
    ).digest
    app.fleet.find(unit.hostId)?.images.add(image)
  },
}

// The address is stored before anything runs in the machine, because the resolver identifies clients by address.
const machineStep: Step<OperationContext> = {
  name: 'machine',
  run: async (context) => {
    const { app, unit, imageDigest } = context
    if (imageDigest === null) throw new Error('the machine step ran before the image step')
    const { address } = await app.fleet.engineOf(unit).create({
      id: unit.id,
      imageDigest,
      isolation: unit.isolation,
      size: machineSizes[unit.size],
      volume: unit.spec.volume,
      networkGroup: unit.networkGroup,
      // Engines of an earlier Berth do not know the field.
      ...(unit.spec.nested ? { nested: true } : {}),
    })
    context.unit = { ...unit, address }
  },
  undo: async ({ app, unit }) => await app.fleet.engineOf(unit).destroy(unit.id),
  checkpoint: true,
}

// Right before the start: by then the slowest part, the image, is done.
const orderStep: Step<OperationContext> = {
  name: 'order',
  run: async ({ app, unit }) => await waitForCreateGroup(app, unit),
}

/** Takes a `creating` unit to `running`, or to `error`, and then throws. */
export const createOperation: UnitOperation = {
  saga: { name: 'create', steps: [imageStep, machineStep, orderStep, startStep, readyStep] },
  onSuccess: async (context) => {
    if (!(await becomeRunning(context))) await removeIfUnwanted(context)
  },
  moveOn: moveToOtherHost,
  onFailure: async (context, failed) => {
    const { app, unit } = context
    app.log.warn({ err: failed.cause, unitId: unit.id, step: failed.step }, 'unit creation failed')
    const full = noRoom(app, unit, failed.cause)
    // State first: a killed process whose unit is still `creating` would look like an exit.
    const error = full?.message ?? failureText(failed.cause, unit)
    const printed = failed.attempted.includes(startStep) ? await readLastLines(app, unit) : []
    if (!(await fail(app, unit, { error, printed }))) return await removeIfUnwanted(context)
    await undoSteps(createOperation, context, failed.attempted)
    await destroyCreateGroup(app, unit)
    throw full ?? couldNotBeMade({ ...unit, error }, failed.cause)
  },
}

/** Form A. Answers once the unit is ready; without `wait`, or after `waitTimeoutMs`, it may still be `creating`. */
export async function createUnits(
  app: App,
  caller: Caller,
  body: CreateFromSpec,
  once: Once | null = null,
): Promise<RunResult> {
  return await createPlanned(app, caller, { plan: planOfSpec(body), wait: body }, once)
}

type Wait = Pick<Create, 'wait' | 'waitTimeoutMs'>

/** The same for the units of any plan. */
export async function createPlanned(
  app: App,
  caller: Caller,
  { plan, wait }: { plan: CreatePlan; wait: Wait },
  once: Once | null,
): Promise<RunResult> {
  const { units, outputs } = await reserveUnits(app, caller, plan, once)
  // Waits for all: one that fails destroys the others, so a caller that gets the error finds nothing left.
  const made = allSettled(units.map((unit) => runOperation(app, unit, createOperation)))
  // A failure after the wait is in the unit's `error`; here it is ignored.
  if (!wait.wait) made.catch(() => {})
  else
    await completesWithin(app.clock, wait.waitTimeoutMs, made).catch(async (error: unknown) => {
      // Its answer says when to send it again, and clients do that with the same key.
      if (error instanceof NoRoom) await once?.release()
      throw error
    })
  const records = await Promise.all(units.map(({ id }) => getRecord(app, caller, id)))
  const told = outputsNow(app, records, { outputs, hostId: units[0]?.hostId })
  return resultOf(app, records, { outputs: told, recipe: plan.recipe })
}

/**
 * Answers for a create that broke off after its units were reserved, or that is still in progress: returns the units
 * as they are now, after a wait of its own. The reconciler resumes such units, not this.
 */
export async function resumeCreate(
  app: App,
  caller: Caller,
  { wait, waitTimeoutMs }: Wait,
  kept: unknown,
): Promise<RunResult> {
  const { unitIds, recipe, ...told } = keptOfCreateSchema.parse(kept)
  const get = async (id: string) =>
    wait ? await waitUntilStable(app, caller, id, waitTimeoutMs) : await getRecord(app, caller, id)
  const units = await Promise.all(unitIds.map(get))
  // Only a unit that could not be created has an error and never ran.
  const failed = wait ? units.find(({ error, startedAt }) => error !== null && startedAt === null) : undefined
  if (failed) throw couldNotBeMade(failed)
  return resultOf(app, units, { outputs: outputsNow(app, units, told), recipe })
}

function resultOf(app: App, units: UnitRecord[], told: Pick<RunResult, 'outputs' | 'recipe'>): RunResult {
  return { units: units.map((unit) => toUnit(app, unit)), ...told, costLine: costLine(units) }
}

/**
 * Takes the unit to `error`, and removes a stack created for it if that is empty. Returns false if the unit has
 * changed state in the meantime.
 */
async function fail(
  app: App,
  unit: UnitRecord,
  { error, printed }: { error: string; printed: LogLine[] },
): Promise<boolean> {
  return await inTransaction(app, async (db) => {
    await lockStack(db, unit.stackId)
    if (!(await transition(app, unit, 'createFailed', { db, set: { error } }))) return false
    await keepLog(app, db, unit, printed)
    await abandonStack(db, { id: unit.stackId, madeBy: unit.madeWith ?? unit.id })
    await deleteStackOfLastUnit(db, { id: unit.stackId, at: app.clock.now() })
    return true
  })
}

/** Names the unit if there are several. */
function couldNotBeMade({ id, name, madeWith, error }: UnitRecord, cause?: unknown): AppError {
  const message = madeWith === null ? (error ?? '') : `"${name}" could not be created: ${error ?? ''}`
  // The image, not the host, has something in the way of a boot file or a mount.
  if (isEngineError(cause, 'start_refused')) return invalidState(message, { unitId: id })
  return providerError(message, { details: { unitId: id }, cause })
}

/** A destroy may have come before the machine existed. */
async function removeIfUnwanted(context: OperationContext): Promise<void> {
  const { app, unit } = context
  const now = await findUnitOfAnyTeam(app.db, { id: unit.id, now: app.clock.now() })
  if (now && !['destroying', 'destroyed'].includes(now.state)) return
  await undoSteps(createOperation, context, [machineStep])
}
