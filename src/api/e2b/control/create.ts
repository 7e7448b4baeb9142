// POST /sandboxes: a unit that ends, or sleeps, after its time, however much it is used.

import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import type { ForkResult } from '../../../contract/fork.ts'
import type { RunResult } from '../../../contract/run-result.ts'
import { notFound, providerError } from '../../../contract/errors.ts'
import { limits } from '../../../contract/limits.ts'
import { PORT_HOST_STACK } from '../../../contract/port-host.ts'
import type { Unit } from '../../../contract/unit.ts'
import { waitUntilStable } from '../../../domain/units/lifecycle/wait-until-stable.ts'
import { toUnit } from '../../../domain/units/model/to-unit.ts'
import { notSupported } from '../errors.ts'
import { unitIdOf } from '../sandbox-id.ts'
import { type ControlAnswer, type ControlCall, perform, readJson } from './call.ts'
import { egressOf, networkSchema } from './network.ts'
import { toAccess } from './sandbox.ts'
import { findSnapshot } from './snapshots.ts'
import { DEFAULT_TEMPLATE, imageOf } from './templates.ts'
import { DEFAULT_TIMEOUT_S, secondsSchema, timeToLiveOf } from './time.ts'

const texts = z.record(z.string(), z.string())

const createSchema = z.object({
  templateID: z.string().min(1).max(255),
  timeout: secondsSchema.nullish(),
  autoPause: z.boolean().nullish(),
  autoPauseMemory: z.boolean().nullish(),
  autoResume: z.object({ enabled: z.boolean() }).nullish(),
  secure: z.boolean().nullish(),
  allow_internet_access: z.boolean().nullish(),
  network: networkSchema.nullish(),
  metadata: texts.nullish(),
  envVars: texts.nullish(),
  mcp: z.record(z.string(), z.unknown()).nullish(),
  volumeMounts: z.array(z.unknown()).nullish(),
  iam: z.record(z.string(), z.unknown()).nullish(),
})
type Create = z.output<typeof createSchema>

export async function createSandbox(call: ControlCall): Promise<ControlAnswer> {
  const { app, sender } = call
  const asked = await readJson(call, createSchema)
  refuseOthers(asked)
  const snapshot = asked.templateID === DEFAULT_TEMPLATE ? null : await findSnapshot(call, asked.templateID)
  if (snapshot === null && unitIdOf(asked.templateID) !== null) throw notFound('template', asked.templateID)
  const unit =
    snapshot === null ? await createOfImage(call, asked) : await createOfSnapshot(call, asked, snapshot)
  if (unit.state === 'error') throw providerError(unit.error ?? 'The sandbox could not be made.')
  return { status: 201, body: toAccess(app, sender.caller, unit) }
}

async function createOfImage(call: ControlCall, asked: Create): Promise<Unit> {
  const input = async () => ({ body: toCreate(asked) })
  const { units } = (await perform(call, { route: 'POST /v1/units', input })) as RunResult
  return await untilMade(call, theOnly(units))
}

/** A copy of it wakes with the memory of the snapshot where that was kept, with the time and labels that are asked for. */
async function createOfSnapshot(call: ControlCall, asked: Create, { id }: Unit): Promise<Unit> {
  const { metadata, envVars, network, allow_internet_access } = asked
  if (envVars && Object.keys(envVars).length > 0)
    throw notSupported('An environment for a sandbox that is made of a snapshot, which has its own,')
  const egress = egressOf(network ?? {}, allow_internet_access)
  const body = {
    name: newName(),
    stack: PORT_HOST_STACK,
    sleep: 'never',
    metadata: metadata ?? {},
    ...endOf(asked),
  }
  const fork = { route: 'POST /v1/units/{id}/fork', input: { params: { id }, body } }
  const copy = theOnly(((await perform(call, fork)) as ForkResult).units)
  const params = { id: copy.id }
  if (egress !== null)
    await perform(call, { route: 'PUT /v1/units/{id}/egress', input: { params, body: egress } })
  return (await perform(call, { route: 'POST /v1/units/{id}/start', input: { params } })) as Unit
}

function theOnly([unit]: Unit[]): Unit {
  if (!unit) throw new TypeError('a create made no unit')
  return unit
}

/** The first unit of an image waits for it. A client expects a sandbox that runs, or waits no longer itself. */
export async function untilMade({ app, sender, signal }: ControlCall, made: Unit): Promise<Unit> {
  let unit = made
  while (unit.state === 'creating' || unit.state === 'starting') {
    signal.throwIfAborted()
    unit = await waitUntilStable(app, sender.caller, unit.id).then((record) => toUnit(app, record))
  }
  return unit
}

function newName(): string {
  return `sandbox-${randomBytes(8).toString('hex')}`
}

function endOf({ timeout, autoPause }: Create): { timeToLive: string; atEnd: string } {
  return {
    timeToLive: timeToLiveOf(timeout ?? DEFAULT_TIMEOUT_S),
    atEnd: autoPause === true ? 'sleep' : 'destroy',
  }
}

function toCreate(asked: Create): Record<string, unknown> {
  const { templateID, metadata, envVars, network, allow_internet_access } = asked
  const egress = egressOf(network ?? {}, allow_internet_access)
  return {
    stack: PORT_HOST_STACK,
    waitTimeoutMs: limits.waitTimeoutMs.max,
    spec: {
      name: newName(),
      image: imageOf(templateID),
      env: envVars ?? {},
      // It ends by its time, and not for being idle.
      sleep: 'never',
      ...endOf(asked),
      metadata: metadata ?? {},
      ...(egress === null ? {} : { egress }),
    },
  }
}

function refuseOthers({ mcp, volumeMounts, iam, autoPauseMemory, autoResume }: Create): void {
  if (autoResume?.enabled === true) throw notSupported('A paused sandbox that a visit resumes')
  if (mcp && Object.keys(mcp).length > 0) throw notSupported('mcp')
  if (volumeMounts && volumeMounts.length > 0) throw notSupported('volumeMounts')
  if (iam) throw notSupported('iam')
  if (autoPauseMemory === false) throw notSupported('A pause at the end of its time without memory')
}
