// The credentials that act for a team without a session: its API keys, and the OAuth clients that its people
// connected (spec 2.9, 4.5, design 5).

import { z } from 'zod'
import { cents, nameLine, strict, timestamp } from './fields.ts'
import { policyChangeSchema, policySchema } from './policy.ts'
import { narrowedSchema } from './team.ts'

export const agentSchema = strict({
  id: z.string(),
  kind: z.enum(['key', 'oauth']),
  name: z.string(),
  prefix: z.string().nullable().describe('The first characters of the key, to recognize it by.'),
  policy: policySchema.meta({ id: 'Policy' }),
  client: strict({
    id: z.string(),
    name: z.string().nullable(),
    uri: z.string().nullable(),
    icon: z.string().nullable(),
  })
    .nullable()
    .describe('The connected OAuth client.'),
  agent: strict({
    name: z.string(),
    title: z.string(),
    version: z.string().nullable(),
    userAgent: z.string().nullable(),
  })
    .nullable()
    .describe(
      'The agent that used the credential last, as it names itself. Updated once a minute; null for an unknown agent.',
    ),
  createdBy: strict({ name: z.string().nullable(), email: z.string().nullable() }).nullable(),
  createdAt: timestamp,
  connectedAt: timestamp.nullable(),
  lastUsedAt: timestamp.nullable().describe('Updated once a minute.'),
  spentTodayCents: cents.describe('What it has spent since midnight in UTC, against `dailySpendCapCents`.'),
  liveUnits: z.int().describe('How many units it runs, against `maxConcurrentUnits`.'),
  revokedAt: timestamp.nullable(),
}).meta({ id: 'Agent' })
export type Agent = z.infer<typeof agentSchema>

/** GET /v1/agents. */
export const agentListSchema = strict({
  agents: z.array(agentSchema),
  seats: strict({ used: z.int(), max: z.int() }).describe('Seats in use, and the seats of the plan.'),
}).meta({ id: 'AgentList' })
export type AgentList = z.infer<typeof agentListSchema>

/** GET /v1/keys. */
export const keyListSchema = strict({ keys: z.array(agentSchema) }).meta({ id: 'KeyList' })
export type KeyList = z.infer<typeof keyListSchema>

const name = nameLine(1, 80)

/** POST /v1/keys. */
export const keyCreateSchema = strict({
  name,
  policy: policySchema.prefault({}),
}).meta({ id: 'KeyCreate' })
export type KeyCreate = z.infer<typeof keyCreateSchema>

/** An answer that an earlier release has kept for a repeated call lacks what that release did not know. */
const asNew = (key: unknown) => (isRecord(key) ? { spentTodayCents: 0, liveUnits: 0, ...key } : key)
const isRecord = (value: unknown): value is object => typeof value === 'object' && value !== null

export const keyCreatedSchema = strict({
  key: z.preprocess(asNew, agentSchema),
  secret: z.string().describe('The key itself. Only this answer shows it.'),
}).meta({ id: 'KeyCreated' })
export type KeyCreated = z.infer<typeof keyCreatedSchema>

/** PATCH /v1/keys/{id} and /v1/agents/{id}. */
export const agentChangeSchema = strict({
  name: name.optional(),
  policy: policyChangeSchema.optional().describe('Omitted fields stay unchanged.'),
}).meta({ id: 'AgentChange' })
export type AgentChange = z.infer<typeof agentChangeSchema>

export const agentChangedSchema = strict({ agent: agentSchema, narrowed: narrowedSchema }).meta({
  id: 'AgentChanged',
})
export type AgentChanged = z.infer<typeof agentChangedSchema>

/** POST /v1/agents/{id}/dry-run. */
export const agentDryRunAskedSchema = strict({
  policy: policyChangeSchema.describe('The change, as PATCH takes it. Omitted fields stay unchanged.'),
}).meta({ id: 'AgentDryRunAsked' })
export type AgentDryRunAsked = z.infer<typeof agentDryRunAskedSchema>

export const agentDryRunSchema = strict({
  stops: z
    .array(strict({ id: z.string(), name: z.string() }))
    .describe(
      'The running units that the change would stop at once, oldest first. They could run again once the policy allows it.',
    ),
  narrows: z
    .array(strict({ id: z.string(), name: z.string() }))
    .describe(
      'The units whose rules of egress the change would narrow, or whose secrets it would take, oldest first. They run on.',
    ),
}).meta({ id: 'AgentDryRun' })
export type AgentDryRun = z.infer<typeof agentDryRunSchema>

export const agentRevokedSchema = strict({ ok: z.literal(true) }).meta({ id: 'AgentRevoked' })
export type AgentRevoked = z.infer<typeof agentRevokedSchema>
