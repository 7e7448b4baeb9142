// Environments of vendors whose hosted agents work in units here (docs/guides/hosted-agents.md), and their sessions.

import { z } from 'zod'
import { sleepWindowPattern, timeToLivePattern } from '../lib/duration.ts'
import { egressAskedSchema } from './egress.ts'
import { cents, strict, text, timestamp } from './fields.ts'
import { imagePattern } from './image-reference.ts'
import { limits } from './limits.ts'
import { policySchema, sizes } from './policy.ts'

/** Whose queues this release knows. */
export const agentVendors = ['claude'] as const

export const hostedStates = ['off', 'starting', 'waiting', 'full', 'failing', 'refused'] as const
export type HostedState = (typeof hostedStates)[number]
export const hostedSessionStates = ['working', 'waiting', 'refused', 'ended'] as const
export type HostedSessionState = (typeof hostedSessionStates)[number]

const { min, max } = limits.imageLength

/** How the units of sessions are made; a session may ask for less or other by its metadata, within the key's policy. */
const planFields = {
  image: z
    .string()
    .min(min)
    .max(max)
    .regex(imagePattern, 'must be an image reference such as "node:22"')
    .describe('The image of the units.'),
  size: z.enum(sizes).describe('Their size.'),
  egress: egressAskedSchema.describe('What they may reach.'),
  sleep: z
    .string()
    .regex(sleepWindowPattern, 'must be "never", or a number followed by m, h or d, such as "1m"')
    .describe('How long one may go unused before it sleeps.'),
  timeToLive: z
    .string()
    .regex(timeToLivePattern, 'must be "never", or a number followed by s, m, h or d, such as "24h"')
    .describe('How long one lives at most.'),
  copyOf: z
    .string()
    .regex(/^unit_[0-9a-f]{32}$/, 'must be the id of a unit, such as unit_0192f0c0a1b27c3d8e4f5a6b7c8d9e0f')
    .nullable()
    .describe(
      'A unit that was prepared: those of sessions are copies of it, in place of image, size and rules.',
    ),
  atOnce: z
    .int()
    .min(limits.sessionsAtOnce.min)
    .max(limits.sessionsAtOnce.max)
    .describe('How many sessions work at one time; the work of others stays queued at the vendor.'),
}

const environmentKey = z
  .string()
  .min(1, 'must be the key of the environment')
  .max(limits.environmentKeyLength)
  .regex(/^[!-~]+$/, 'must be one line without blanks: was it copied whole?')
  .describe("The environment's credential, from the vendor's console. It is sealed, and no answer shows it.")

export const hostedEnvironmentSchema = strict({
  id: z.string(),
  vendor: z.enum(agentVendors),
  environment: z.string().describe("The vendor's id of it."),
  on: z.boolean(),
  state: z
    .enum(hostedStates)
    .describe(
      '`waiting`: for sessions. `full`: there is no room for another unit. `failing`: the vendor does not answer as it should. `refused`: it refuses the credential, or this service the key.',
    ),
  note: z
    .string()
    .nullable()
    .describe('The last error, as a sentence, until it is over; or what was left for others.'),
  notedAt: timestamp.nullable(),
  key: strict({ id: z.string(), name: z.string() }).describe(
    'The key whose policy bounds its sessions; revoked with the environment.',
  ),
  ...planFields,
  working: z.int().describe('How many sessions work now.'),
  createdAt: timestamp,
}).meta({ id: 'HostedEnvironment' })
export type HostedEnvironment = z.infer<typeof hostedEnvironmentSchema>

/** GET /v1/hosted-agents. */
export const hostedListSchema = strict({ environments: z.array(hostedEnvironmentSchema) }).meta({
  id: 'HostedList',
})
export type HostedList = z.infer<typeof hostedListSchema>

export const hostedSessionSchema = strict({
  id: z.string().describe("The vendor's id of it."),
  state: z
    .enum(hostedSessionStates)
    .describe('`working`: a turn is under way. `waiting`: for the next one. `refused`: it cannot begin.'),
  note: z.string().nullable().describe('Why it was refused, or what it works without.'),
  turns: z.int().describe('How often its work has begun.'),
  unit: strict({ id: z.string(), name: z.string(), state: z.string() }).nullable(),
  costCents: cents.describe('What its units have cost.'),
  beganAt: timestamp,
  changedAt: timestamp,
}).meta({ id: 'HostedSession' })
export type HostedSession = z.infer<typeof hostedSessionSchema>

/** GET /v1/hosted-agents/{id}. */
export const hostedAnswerSchema = strict({
  environment: hostedEnvironmentSchema,
  sessions: z
    .array(hostedSessionSchema)
    .describe(`Those that changed last, newest first; at most ${limits.hostedSessionsShown}.`),
}).meta({ id: 'HostedAnswer' })
export type HostedAnswer = z.infer<typeof hostedAnswerSchema>

/** POST /v1/hosted-agents. */
export const hostedCreateSchema = strict({
  vendor: z.enum(agentVendors).default('claude').describe('Whose hosted agents: `claude`.'),
  environment: text(128)
    .regex(/^[A-Za-z0-9_-]+$/, 'must be the id of a self-hosted environment, such as env_01AbC')
    .describe('The id of the self-hosted environment, from the vendor’s console.'),
  environmentKey,
  policy: policySchema
    .prefault({})
    .describe('Of the key that is made for it: what its sessions may run, reach and spend together.'),
  image: planFields.image.default('berth.local/agent:1'),
  size: planFields.size.default('small'),
  egress: egressAskedSchema.prefault({ mode: 'none', siblings: 'none' }),
  sleep: planFields.sleep.default('1m'),
  timeToLive: planFields.timeToLive.default('24h'),
  copyOf: planFields.copyOf.default(null),
  atOnce: planFields.atOnce.default(limits.sessionsAtOnce.default),
}).meta({ id: 'HostedCreate' })
export type HostedCreate = z.infer<typeof hostedCreateSchema>

/** PATCH /v1/hosted-agents/{id}. */
export const hostedChangeSchema = strict({
  on: z.boolean().describe('Off: no work is asked for, and what is under way goes back to the queue.'),
  environmentKey,
  ...planFields,
})
  .partial()
  .meta({ id: 'HostedChange' })
export type HostedChange = z.infer<typeof hostedChangeSchema>

export const hostedChangedSchema = strict({ environment: hostedEnvironmentSchema }).meta({
  id: 'HostedChanged',
})
export type HostedChanged = z.infer<typeof hostedChangedSchema>

export const hostedDeletedSchema = strict({
  ok: z.literal(true),
  destroyed: z.array(z.string()).describe('The units of its sessions, which are destroyed.'),
}).meta({ id: 'HostedDeleted' })
export type HostedDeleted = z.infer<typeof hostedDeletedSchema>
