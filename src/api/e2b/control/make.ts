// Units of sandboxes, snapshots and builds: made of an image or as a copy, and removed again where they are of no use.

import { createHash, randomBytes } from 'node:crypto'
import { z } from 'zod'
import type { ForkResult } from '../../../contract/fork.ts'
import type { RunResult } from '../../../contract/run-result.ts'
import { conflict, providerError, unavailable } from '../../../contract/errors.ts'
import { limits } from '../../../contract/limits.ts'
import type { CreationStage, Unit } from '../../../contract/unit.ts'
import { getUnit } from '../../../domain/units/get.ts'
import { shortOfMemory } from '../../../domain/units/lifecycle/cold-starts.ts'
import { waitUntilStable } from '../../../domain/units/lifecycle/wait-until-stable.ts'
import { toUnit } from '../../../domain/units/model/to-unit.ts'
import { logError, toAppError } from '../../http/errors.ts'
import { headerOf } from '../sandbox-call.ts'
import { type ControlCall, perform } from './call.ts'
import { templateOf } from './templates.ts'

/** A name that no other unit has. */
export function newName(kind: 'sandbox' | 'snapshot' | 'template' | 'volume'): string {
  return `${kind}-${randomBytes(8).toString('hex')}`
}

/** The same for each repetition of a call, as what is asked for has to be. */
export function nameOfSandbox(call: ControlCall): string {
  const { idempotencyKey } = keyOf(call)
  if (idempotencyKey === undefined) return newName('sandbox')
  const digest = createHash('sha256').update(idempotencyKey).digest('hex')
  return `sandbox-${digest.slice(0, 16)}`
}

/** Of a create that its client may send again. */
function keyOf(call: ControlCall): { idempotencyKey?: string } {
  const idempotencyKey = headerOf(call, 'idempotency-key')
  return idempotencyKey === null ? {} : { idempotencyKey }
}

/**
 * The unit runs; one that could not be made is removed again. `toBody`: the body of a create; what it throws refuses the call. `waitMs`: how long
 * the caller waits for an image that is not here yet; then it is told so, and the unit ends once it is ready.
 */
export async function createUnit(
  call: ControlCall,
  toBody: () => object,
  waitMs: number = limits.waitTimeoutMs.max,
): Promise<Unit> {
  const input = async () => ({ body: { ...toBody(), waitTimeoutMs: waitMs } })
  const made = perform(call, { route: 'POST /v1/units', input, ...keyOf(call) }).catch(
    async (error: unknown) => {
      const failed = failedSchema.safeParse(toAppError(error).details)
      if (failed.success) await discardUnit(call, failed.data.unitId)
      // Clients send the call again.
      throw shortOfMemory(toAppError(error)) ?? error
    },
  )
  const { units } = (await made) as RunResult
  const unit = theOnly(units)
  const stage = unit.state === 'creating' ? unit.progress?.stage : undefined
  if (waitMs < limits.waitTimeoutMs.max && stage !== undefined && IMAGE_STAGES.has(stage)) {
    await endSoon(call, unit)
    throw unavailable(
      `The image "${templateOf(unit.image)}" is not on this host yet (${stage}), which takes minutes the first time: create the sandbox again then.`,
      AGAIN_AFTER_S,
    )
  }
  const ended = await untilMade(call, unit)
  if (ended.state !== 'error') return await refuseGone(call, ended)
  await discardUnit(call, ended.id)
  const failure = providerError(ended.error ?? 'The unit could not be made.')
  throw shortOfMemory(failure) ?? failure
}

/** What a repeated call is answered with is of the moment of the first one. */
async function refuseGone(call: ControlCall, unit: Unit): Promise<Unit> {
  if (keyOf(call).idempotencyKey === undefined) return unit
  const { state } = await getUnit(call.app, call.sender.caller, unit.id)
  if (state === 'destroying' || state === 'destroyed')
    throw conflict('The sandbox that was made with this Idempotency-Key is gone: send another key.')
  return unit
}

/** What a create that came to nothing says of the unit that it left. */
const failedSchema = z.object({ unitId: z.string() })

const IMAGE_STAGES: ReadonlySet<CreationStage> = new Set(['waiting', 'downloading', 'unpacking', 'building'])
const AGAIN_AFTER_S = 30

async function endSoon(call: ControlCall, { id }: Unit): Promise<void> {
  const input = { params: { id }, body: { timeToLive: '1s', atEnd: 'destroy' } }
  await perform(call, { route: 'PATCH /v1/units/{id}', input })
}

/** The copy sleeps where its source does. */
export async function copyUnit(call: ControlCall, id: string, body: object): Promise<Unit> {
  const input = { params: { id }, body }
  const asked = { route: 'POST /v1/units/{id}/fork', input, ...keyOf(call) }
  return theOnly(((await perform(call, asked)) as ForkResult).units)
}

export async function startUnit(call: ControlCall, id: string): Promise<Unit> {
  return (await perform(call, { route: 'POST /v1/units/{id}/start', input: { params: { id } } })) as Unit
}

/** Without its memory, also one that sleeps. */
export async function stopUnit(call: ControlCall, id: string): Promise<void> {
  await perform(call, { route: 'POST /v1/units/{id}/stop', input: { params: { id } } })
}

export async function sleepNow(call: ControlCall, id: string): Promise<void> {
  const input = { params: { id }, body: { sleep: 'never', now: true } }
  await perform(call, { route: 'POST /v1/units/{id}/sleep', input })
}

export async function destroyUnit(call: ControlCall, id: string): Promise<void> {
  await perform(call, { route: 'DELETE /v1/units/{id}', input: { params: { id } } })
}

/** Of one that came to nothing: a failure is in the log alone. */
export async function discardUnit(call: ControlCall, id: string): Promise<void> {
  await destroyUnit(call, id).catch((error: unknown) => logError(call.app.log, error, call.requestId))
}

function theOnly([unit]: Unit[]): Unit {
  if (!unit) throw new TypeError('a create or a fork made no unit')
  return unit
}

/** The first unit of an image waits for it. A client expects a sandbox that runs, or waits no longer itself. */
async function untilMade({ app, sender, signal }: ControlCall, made: Unit): Promise<Unit> {
  let unit = made
  while (unit.state === 'creating' || unit.state === 'starting') {
    signal.throwIfAborted()
    unit = await waitUntilStable(app, sender.caller, unit.id).then((record) => toUnit(app, record))
  }
  return unit
}
