// POST /v1/units, form A: check, reserve in one transaction, then bring the machine up in idempotent steps
// (design 4). Only a first create can end in `error`: everything of it on the host is undone and the row
// kept for an hour, so that its owner can read why.

import type { App } from '../../app.ts'
import type { Create } from '../../contract/create.ts'
import { type AppError, providerError } from '../../contract/errors.ts'
import { parseImageReference } from '../../contract/image-reference.ts'
import type { RunResult } from '../../contract/run-result.ts'
import { doneWithin } from '../../lib/done-within.ts'
import type { Step } from '../../lib/saga.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { findUnitOfAnyTeam } from '../../store/units.ts'
import { costLine } from '../billing/cost-line.ts'
import type { Caller } from '../credentials/caller.ts'
import type { Once } from '../idempotency/once.ts'
import { failureText } from './failures.ts'
import { getRecord } from './get.ts'
import { machineSizes } from './machine.ts'
import { keptOfCreateSchema, reserveUnit } from './reserve.ts'
import { becomeRunning, readyStep, startStep } from './run.ts'
import { getSettledUnit } from './settled.ts'
import { showUnit } from './show.ts'
import { transition } from './transition.ts'
import { undo, walk, type Walk, type Way } from './way.ts'

const imageStep: Step<Walk> = {
  name: 'image',
  run: async (context) => {
    const { canonical } = parseImageReference(context.unit.image)
    context.imageDigest = (await context.app.engine.pull(canonical)).digest
  },
}

// The address is written down before anything runs in it: the resolver knows who asks by it.
const machineStep: Step<Walk> = {
  name: 'machine',
  run: async (context) => {
    const { app, unit, imageDigest } = context
    if (imageDigest === null) throw new Error('the image comes before the machine')
    const { address } = await app.engine.create({
      id: unit.id,
      imageDigest,
      isolation: unit.isolation,
      size: machineSizes[unit.size],
      volume: unit.spec.volume,
      networkGroup: unit.networkGroup,
    })
    context.unit = { ...unit, address }
  },
  undo: async ({ app, unit }) => await app.engine.destroy(unit.id),
  checkpoint: true,
}

/** A `creating` unit to `running`, or to `error`, which throws. */
export const createWay: Way = {
  saga: { name: 'create', steps: [imageStep, machineStep, startStep, readyStep] },
  arrive: async (context) => {
    await becomeRunning(context)
    await removeIfUnwanted(context)
  },
  giveUp: async (context, failed) => {
    const { app, unit } = context
    app.log.warn({ err: failed.cause, unitId: unit.id, step: failed.step }, 'a unit could not be made')
    // State first: a process killed while its unit still counts as creating would look like an exit.
    const error = failureText(failed.cause, unit)
    const given = await transition(app, unit, 'createFailed', { set: { error } })
    if (!given) return await removeIfUnwanted(context)
    await undo(createWay, context, failed.reached)
    throw couldNotBeMade(unit.id, error, failed.cause)
  },
}

/** Answers once the unit is ready, or still `creating` after `waitTimeoutMs` or without `wait`. */
export async function createUnits(
  app: App,
  caller: Caller,
  body: Create,
  once: Once | null = null,
): Promise<RunResult> {
  const { unit, outputs } = await reserveUnit(app, caller, body, once)
  const made = walk(app, unit, createWay)
  // A failure after the wait is the unit's `error`; here nobody listens any more.
  if (body.wait) await doneWithin(app.clock, body.waitTimeoutMs, made)
  else made.catch(() => {})
  return resultOf(app, await getRecord(app, caller, unit.id), outputs)
}

/**
 * Answers for a create that broke off once its unit was reserved, or that is still under way: the unit as it
 * is by now, after a wait of its own. Whoever finds a unit in a passing state drives it on, not this.
 */
export async function resumeCreate(
  app: App,
  caller: Caller,
  { wait, waitTimeoutMs }: Create,
  kept: unknown,
): Promise<RunResult> {
  const { unitId, outputs } = keptOfCreateSchema.parse(kept)
  if (!wait) return resultOf(app, await getRecord(app, caller, unitId), outputs)
  const unit = await getSettledUnit(app, caller, unitId, waitTimeoutMs)
  // Only a unit that could not be made has an error and never ran.
  if (unit.error !== null && unit.startedAt === null) throw couldNotBeMade(unit.id, unit.error)
  return resultOf(app, unit, outputs)
}

function resultOf(app: App, unit: UnitRecord, outputs: Record<string, string>): RunResult {
  return { units: [showUnit(app, unit)], outputs, recipe: null, costLine: costLine([unit]) }
}

function couldNotBeMade(unitId: string, error: string, cause?: unknown): AppError {
  return providerError(error, { details: { unitId }, cause })
}

/** A destroy may have come by before the machine was there. */
async function removeIfUnwanted(context: Walk): Promise<void> {
  const { app, unit } = context
  const now = await findUnitOfAnyTeam(app.db, { id: unit.id, now: app.clock.now() })
  if (now && !['destroying', 'destroyed'].includes(now.state)) return
  await undo(createWay, context, [machineStep])
}
