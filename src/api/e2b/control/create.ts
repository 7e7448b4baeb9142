// POST /sandboxes: a unit that ends, or sleeps, after its time, however much it is used.

import { z } from 'zod'
import { AppError, notFound } from '../../../contract/errors.ts'
import { PORT_HOST_STACK } from '../../../contract/port-host.ts'
import type { Unit } from '../../../contract/unit.ts'
import type { PortVisits } from '../../../domain/units/port-rules.ts'
import { SECOND } from '../../../lib/clock.ts'
import { toAppError } from '../../http/errors.ts'
import { notSupported } from '../errors.ts'
import { sandboxIdOf, unitIdOf } from '../sandbox-id.ts'
import { type ControlAnswer, type ControlCall, perform, readJson } from './call.ts'
import { copyUnit, createUnit, nameOfSandbox, startUnit } from './make.ts'
import { apart, egressOf, networkSchema } from './network.ts'
import { isOfOthers, toAccess } from './sandbox.ts'
import { findSnapshot, nameIn } from './snapshots.ts'
import { DEFAULT_TEMPLATE, imageOf, isOfTemplate, isOnlyName, labelOfTemplate } from './templates.ts'
import { DEFAULT_TIMEOUT_S, secondsSchema, timeToLiveOf } from './time.ts'
import { beginStart, startLabelIn } from './start-command.ts'
import { applyVisits, visitsOf } from './visits.ts'

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
/** Clients wait for a minute by themselves, and then know nothing of the reason. */
const WAIT_MS = 50 * SECOND

type Create = z.output<typeof createSchema>

export async function createSandbox(call: ControlCall): Promise<ControlAnswer> {
  const { app, sender } = call
  const asked = await readJson(call, createSchema)
  refuseOthers(asked)
  const visits = visitsIn(asked)
  const snapshot = asked.templateID === DEFAULT_TEMPLATE ? null : await findSnapshot(call, asked.templateID)
  if (snapshot === null && unitIdOf(asked.templateID) !== null) throw notFound('template', asked.templateID)
  const unit =
    snapshot === null ? await createOfImage(call, asked) : await createOfSnapshot(call, asked, snapshot)
  await applyVisits(call, unit, visits)
  return { status: 201, body: toAccess(app, sender.caller, unit, visits) }
}

/** A sandbox that a visit resumes has as much time then as it was made with. */
function visitsIn({ network, autoResume, timeout }: Create): PortVisits {
  const resumes = autoResume?.enabled === true ? { timeout: timeout ?? DEFAULT_TIMEOUT_S } : null
  return visitsOf(network ?? {}, resumes)
}

async function createOfImage(call: ControlCall, asked: Create): Promise<Unit> {
  return await createUnit(call, () => toCreate(asked, nameOfSandbox(call)), WAIT_MS).catch(
    (error: unknown) => {
      throw orNoTemplate(asked.templateID, toAppError(error))
    },
  )
}

/** A name that is no template's is looked for among the images that are built in, as the last. */
function orNoTemplate(template: string, error: AppError): AppError {
  if (error.code !== 'provider_error' || !isOnlyName(template)) return error
  return new AppError('not_found', 404, `There is no template "${template}". ${error.message}`)
}

/** A copy of it wakes with the memory of the snapshot where that was kept, with the time and labels that are asked for. */
async function createOfSnapshot(call: ControlCall, asked: Create, snapshot: Unit): Promise<Unit> {
  const { metadata, envVars, network, allow_internet_access } = asked
  const egress = egressOf(network ?? {}, allow_internet_access)
  const copy = await copyUnit(call, snapshot.id, {
    name: nameOfSandbox(call),
    stack: PORT_HOST_STACK,
    sleep: 'never',
    metadata: {
      ...metadata,
      ...labelOfTemplate(nameIn(snapshot) ?? sandboxIdOf(snapshot.id)),
      ...startLabelIn(snapshot),
    },
    env: envVars ?? {},
    ...endOf(asked),
  })
  const restrict = { params: { id: copy.id }, body: apart(egress) }
  // Otherwise it has the rules of its source.
  if (egress !== null) await perform(call, { route: 'PUT /v1/units/{id}/egress', input: restrict })
  const unit = await startUnit(call, copy.id)
  await beginStart(call, snapshot, unit)
  return unit
}

function endOf({ timeout, autoPause, autoPauseMemory }: Create): { timeToLive: string; atEnd: string } {
  return {
    timeToLive: timeToLiveOf(timeout ?? DEFAULT_TIMEOUT_S),
    atEnd: autoPause !== true ? 'destroy' : autoPauseMemory === false ? 'stop' : 'sleep',
  }
}

function toCreate(asked: Create, name: string): Record<string, unknown> {
  const { templateID, metadata, envVars, network, allow_internet_access } = asked
  return {
    stack: PORT_HOST_STACK,
    spec: {
      name,
      image: imageOf(templateID),
      env: envVars ?? {},
      // It ends by its time, and not for being idle.
      sleep: 'never',
      ...endOf(asked),
      metadata: metadata ?? {},
      egress: apart(egressOf(network ?? {}, allow_internet_access)),
    },
  }
}

function refuseOthers({ mcp, volumeMounts, iam, metadata }: Create): void {
  const reserved = Object.keys(metadata ?? {}).find((label) => isOfTemplate(label) || isOfOthers(label))
  if (reserved !== undefined) throw notSupported(`The metadata ${reserved}`)
  if (mcp && Object.keys(mcp).length > 0) throw notSupported('mcp')
  if (volumeMounts && volumeMounts.length > 0) throw notSupported('volumeMounts')
  if (iam) throw notSupported('iam')
}
