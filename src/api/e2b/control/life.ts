// The life of a sandbox: its end, its time, its pauses, its copies and what it may reach.

import { z } from 'zod'
import type { ForkResult } from '../../../contract/fork.ts'
import { conflict, notFound } from '../../../contract/errors.ts'
import type { Unit } from '../../../contract/unit.ts'
import { getPortVisits, type PortVisits } from '../../../domain/units/port-rules.ts'
import { createSemaphore } from '../../../lib/concurrency/semaphore.ts'
import { toAppError } from '../../http/errors.ts'
import type { Input } from '../run.ts'
import { asBusy, type ControlAnswer, type ControlCall, perform, readJson } from './call.ts'
import { startUnit } from './make.ts'
import { apart, egressOf, networkSchema } from './network.ts'
import { findSandbox, isPaused, toAccess } from './sandbox.ts'
import { DEFAULT_TIMEOUT_S, isLater, secondsSchema, timeToLiveOf } from './time.ts'
import { beginStart } from './start-command.ts'
import { applyVisits } from './visits.ts'

const DONE: ControlAnswer = { status: 204, body: null }

export async function killSandbox(call: ControlCall, sandboxId: string): Promise<ControlAnswer> {
  await change(call, sandboxId, 'DELETE /v1/units/{id}', async () => ({}))
  return DONE
}

/** One that is paused has no time that could be set, which clients know by 404. */
export async function setTimeout(call: ControlCall, sandboxId: string): Promise<ControlAnswer> {
  const schema = z.object({ timeout: secondsSchema })
  await change(call, sandboxId, PATCH, async (unit) => {
    const { timeout } = await readJson(call, schema)
    if (isPaused(unit)) throw notFound('sandbox', sandboxId)
    return { body: { timeToLive: timeToLiveOf(timeout) } }
  })
  return DONE
}

/** Only ever gives it more time. */
export async function refresh(call: ControlCall, sandboxId: string): Promise<ControlAnswer> {
  const schema = z.object({ duration: secondsSchema.nullish() })
  await change(call, sandboxId, PATCH, async (unit) => {
    const { duration } = await readJson(call, schema)
    return { body: longer(call, unit, duration ?? DEFAULT_TIMEOUT_S) }
  })
  return DONE
}

/** Keeps the memory where the class of isolation can; a pause without memory keeps the disk alone. */
export async function pauseSandbox(call: ControlCall, sandboxId: string): Promise<ControlAnswer> {
  const { app, sender } = call
  const { memory } = await readJson(call, z.object({ memory: z.boolean().nullish() }))
  const keepsMemory = memory !== false
  const unit = await findSandbox(app, sender.caller, sandboxId)
  const paused = isPaused(unit)
  const [route, body] = keepsMemory
    ? ['POST /v1/units/{id}/sleep', { sleep: unit.sleep, now: true }]
    : ['POST /v1/units/{id}/stop', undefined]
  await perform(call, {
    route,
    input: async () => {
      if (paused) throw conflict('The sandbox is paused already.')
      return { params: { id: unit.id }, body }
    },
  }).catch((error: unknown) => {
    throw paused ? error : asBusy(error)
  })
  return DONE
}

const connectSchema = z.object({
  timeout: secondsSchema.nullish(),
  memory: z.boolean().nullish(),
  autoPause: z.boolean().nullish(),
})

/**
 * Resumes a paused sandbox, which then has the time that is asked for; a running one only ever gets more. `memory: false`:
 * it starts again from its disk.
 */
export async function connect(call: ControlCall, sandboxId: string): Promise<ControlAnswer> {
  const { app, sender } = call
  const { timeout, autoPause, memory } = await readJson(call, connectSchema)
  const seconds = timeout ?? DEFAULT_TIMEOUT_S
  const before = await findSandbox(app, sender.caller, sandboxId)
  const params = { id: before.id }
  const wasPaused = isPaused(before)
  if (wasPaused && memory === false)
    await perform(call, { route: 'POST /v1/units/{id}/stop', input: { params } })
  if (wasPaused) await perform(call, { route: 'POST /v1/units/{id}/start', input: { params } })
  const asked = wasPaused
    ? {
        timeToLive: timeToLiveOf(seconds),
        ...(autoPause === null || autoPause === undefined ? {} : { atEnd: autoPause ? 'sleep' : 'destroy' }),
      }
    : longer(call, before, seconds)
  const unit = (await perform(call, { route: PATCH, input: { params, body: asked } })) as Unit
  const visits = await getPortVisits(app, sender.caller, unit.id)
  return { status: wasPaused ? 201 : 200, body: toAccess(app, sender.caller, unit, visits) }
}

/** A sandbox that runs has nothing to resume. */
export async function resume(call: ControlCall, sandboxId: string): Promise<ControlAnswer> {
  const { app, sender } = call
  const unit = await findSandbox(app, sender.caller, sandboxId)
  if (!isPaused(unit)) throw conflict('The sandbox runs already.')
  return await connect(call, sandboxId)
}

const MAX_COPIES = 100
/** Each holds the source for an instant. */
const COPIES_AT_ONCE = 4

const forkSchema = z.object({
  timeout: secondsSchema.nullish(),
  count: z.int().min(1).max(MAX_COPIES, `must be at most ${MAX_COPIES}`).nullish(),
})

/** Each copy stands for itself: one that cannot be made is an error in its place. */
export async function forkSandbox(call: ControlCall, sandboxId: string): Promise<ControlAnswer> {
  const { app, sender } = call
  const { timeout, count } = await readJson(call, forkSchema)
  const source = await findSandbox(app, sender.caller, sandboxId)
  const body = { timeToLive: timeToLiveOf(timeout ?? DEFAULT_TIMEOUT_S) }
  const visits = await getPortVisits(app, sender.caller, source.id)
  const inPlace = createSemaphore(COPIES_AT_ONCE)
  const copy = async () => await inPlace(async () => await copyOnce(call, source, body, visits))
  return { status: 201, body: await Promise.all(Array.from({ length: count ?? 1 }, copy)) }
}

/** It is visited as its source is, and begins the start command of its template as each sandbox of that does. */
async function copyOnce(call: ControlCall, source: Unit, body: object, visits: PortVisits): Promise<object> {
  const { app, sender } = call
  try {
    const input = { params: { id: source.id }, body }
    const { units } = (await perform(call, { route: 'POST /v1/units/{id}/fork', input })) as ForkResult
    const [made] = units
    if (!made) throw new TypeError('a fork made no unit')
    const copy = isPaused(made) ? await startUnit(call, made.id) : made
    await applyVisits(call, copy, visits)
    await beginStart(call, source, copy)
    return { sandbox: toAccess(app, sender.caller, copy, visits) }
  } catch (error) {
    const { status, message } = toAppError(error)
    if (call.signal.aborted) throw error
    return { error: { code: status, message } }
  }
}

export async function setNetwork(call: ControlCall, sandboxId: string): Promise<ControlAnswer> {
  const schema = networkSchema.extend({ allow_internet_access: z.boolean().nullish() })
  await change(call, sandboxId, 'PUT /v1/units/{id}/egress', async () => {
    const { allow_internet_access, ...network } = await readJson(call, schema)
    return { body: apart(egressOf(network, allow_internet_access)) }
  })
  return DONE
}

const PATCH = 'PATCH /v1/units/{id}'

/** What to ask for so that a running sandbox lives at least so long; nothing where it does already. */
function longer({ app }: ControlCall, unit: Unit, seconds: number): { timeToLive?: string } {
  return isLater(seconds, unit.endsAt, app.clock.now()) ? { timeToLive: timeToLiveOf(seconds) } : {}
}

/** A change of a sandbox that exists; its body is read once the rate is spent. */
async function change(
  call: ControlCall,
  sandboxId: string,
  route: string,
  ask: (unit: Unit) => Promise<Pick<Input, 'body'>>,
): Promise<unknown> {
  const { app, sender } = call
  return await perform(call, {
    route,
    input: async () => {
      const unit = await findSandbox(app, sender.caller, sandboxId)
      return { params: { id: unit.id }, ...(await ask(unit)) }
    },
  })
}
