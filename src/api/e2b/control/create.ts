// POST /sandboxes: a unit that ends, or sleeps, after its time, however much it is used.

import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import type { RunResult } from '../../../contract/run-result.ts'
import { providerError } from '../../../contract/errors.ts'
import { PORT_HOST_STACK } from '../../../contract/port-host.ts'
import { notSupported } from '../errors.ts'
import { type ControlAnswer, type ControlCall, perform, readJson } from './call.ts'
import { egressOf, networkSchema } from './network.ts'
import { toAccess } from './sandbox.ts'
import { imageOf } from './templates.ts'
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
  const made = (await perform(call, {
    route: 'POST /v1/units',
    input: async () => ({ body: toCreate(await readJson(call, createSchema)) }),
  })) as RunResult
  const [unit] = made.units
  if (!unit || unit.state === 'error') throw providerError(unit?.error ?? 'The sandbox could not be made.')
  return { status: 201, body: toAccess(app, sender.caller, unit) }
}

function toCreate(asked: Create): Record<string, unknown> {
  refuseOthers(asked)
  const { templateID, timeout, autoPause, metadata, envVars, network, allow_internet_access } = asked
  const egress = egressOf(network ?? {}, allow_internet_access)
  return {
    stack: PORT_HOST_STACK,
    spec: {
      name: `sandbox-${randomBytes(8).toString('hex')}`,
      image: imageOf(templateID),
      env: envVars ?? {},
      // It ends by its time, and not for being idle.
      sleep: 'never',
      timeToLive: timeToLiveOf(timeout ?? DEFAULT_TIMEOUT_S),
      atEnd: autoPause === true ? 'sleep' : 'destroy',
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
