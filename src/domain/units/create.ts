// POST /v1/units, form A: check, reserve in one transaction, then bring the machine up in idempotent steps
// (design 4). Only a first create can end in `error`: everything of it on the host is undone and the row
// kept for an hour, so that its owner can read why.

import type { App } from '../../app.ts'
import type { Create } from '../../contract/create.ts'
import { providerError, validation } from '../../contract/errors.ts'
import { parseImageReference } from '../../contract/image-reference.ts'
import type { RunResult } from '../../contract/run-result.ts'
import { runSteps, type Step, StepFailed, undoSteps } from '../../lib/saga.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { findUnitOfAnyTeam, setAddress } from '../../store/units.ts'
import { costLine } from '../billing/cost-line.ts'
import type { Caller } from '../credentials/caller.ts'
import { failureText } from './failures.ts'
import { getRecord } from './get.ts'
import { machineSizes } from './machine.ts'
import { reserveUnit } from './reserve.ts'
import { finishRun, logUndo, readyStep, type RunContext, startStep } from './run.ts'
import { showUnit } from './show.ts'
import { transition } from './transition.ts'

const imageStep: Step<CreateContext> = {
  name: 'image',
  run: async (context) => {
    const { canonical } = parseImageReference(context.unit.image)
    context.imageDigest = (await context.app.engine.pull(canonical)).digest
  },
}

const machineStep: Step<CreateContext> = {
  name: 'machine',
  run: async ({ app, unit, imageDigest }) => {
    const { address } = await app.engine.create({
      id: unit.id,
      imageDigest,
      isolation: unit.isolation,
      size: machineSizes[unit.size],
      volume: unit.spec.volume,
      networkGroup: unit.networkGroup,
    })
    // Before anything runs in it: the resolver knows who asks by this address.
    if (!(await setAddress(app.db, { id: unit.id, address }))) throw new Superseded()
  },
  undo: async ({ app, unit }) => await app.engine.destroy(unit.id),
}

const steps: Step<CreateContext>[] = [imageStep, machineStep, startStep, readyStep]

type CreateContext = RunContext & { imageDigest: string }

/** The unit is not being made any more: somebody destroys it. */
class Superseded extends Error {}

/** Answers once the unit is ready, or still `creating` after `waitTimeoutMs` or without `wait`. */
export async function createUnits(app: App, caller: Caller, body: Create): Promise<RunResult> {
  if (body.expose !== undefined) {
    const message = 'publishing is not available yet; leave it out'
    throw validation([{ path: 'expose', message }])
  }
  const { unit, outputs } = await reserveUnit(app, caller, body)
  const driven = driveCreate(app, unit)
  if (body.wait) await atMost(app, body.waitTimeoutMs, driven)
  else driven.catch(() => {})
  const shown = showUnit(await getRecord(app, caller, unit.id))
  return { units: [shown], outputs, recipe: null, costLine: costLine([shown]) }
}

/** Takes a `creating` unit on to `running`, or to `error`, which throws. */
export async function driveCreate(app: App, unit: UnitRecord): Promise<void> {
  await app.drive(`create:${unit.id}`, async () => {
    const context: CreateContext = { app, unit, imageDigest: '', startedAt: null, ended: false }
    try {
      await runSteps(steps, context)
    } catch (failed) {
      if (!(failed instanceof StepFailed)) throw failed
      return await giveUp(context, failed)
    }
    await finishRun(context)
    await removeIfUnwanted(context)
  })
}

async function giveUp(context: CreateContext, failed: StepFailed<CreateContext>): Promise<void> {
  const { app, unit } = context
  app.log.warn({ err: failed.cause, unitId: unit.id, step: failed.step }, 'a unit could not be made')
  // State first: a process killed while its unit still counts as creating would look like an exit.
  const error = failureText(failed.cause, unit)
  const given = await transition(app, unit, 'createFailed', { set: { error } })
  if (!given) return await removeIfUnwanted(context)
  logUndo(app, unit, await undoSteps(failed.reached, context))
  throw providerError(error, { details: { unitId: unit.id }, cause: failed.cause })
}

/** A destroy may have come by before the machine was there. */
async function removeIfUnwanted(context: CreateContext): Promise<void> {
  const { app, unit } = context
  const now = await findUnitOfAnyTeam(app.db, { id: unit.id, now: app.clock.now() })
  if (now && !['destroying', 'destroyed'].includes(now.state)) return
  logUndo(app, unit, await undoSteps([machineStep], context))
}

/** The work's outcome, or nothing when it takes longer; it then goes on by itself. */
async function atMost(app: App, timeoutMs: number, work: Promise<void>): Promise<void> {
  const done = new AbortController()
  // A failure after the wait is the unit's `error`; here nobody listens any more.
  work.catch(() => {})
  try {
    await Promise.race([work, app.clock.sleep(timeoutMs, done.signal).catch(() => {})])
  } finally {
    done.abort()
  }
}
