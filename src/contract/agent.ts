// Who may act for a team without being signed in: its API keys and the OAuth clients its people have connected
// (spec 2.9, 4.5, design 5).

import { z } from 'zod'
import { nameLine, strict, timestamp } from './fields.ts'
import { policyChangeSchema, policySchema } from './policy.ts'

const agentSchema = strict({
  id: z.string(),
  kind: z.enum(['key', 'oauth']),
  name: z.string(),
  prefix: z.string().nullable().describe('What the key begins with.'),
  policy: policySchema.meta({ id: 'Policy' }),
  client: strict({
    id: z.string(),
    name: z.string().nullable(),
    uri: z.string().nullable(),
    icon: z.string().nullable(),
  })
    .nullable()
    .describe('The OAuth client that was connected.'),
  agent: strict({
    name: z.string(),
    title: z.string(),
    version: z.string().nullable(),
    userAgent: z.string().nullable(),
  })
    .nullable()
    .describe(
      'What the agent that used it last says it is, true to the minute; null for what is no known agent.',
    ),
  createdBy: strict({ name: z.string().nullable(), email: z.string().nullable() }).nullable(),
  createdAt: timestamp,
  connectedAt: timestamp.nullable(),
  lastUsedAt: timestamp.nullable().describe('True to the minute.'),
  revokedAt: timestamp.nullable(),
}).meta({ id: 'Agent' })
export type Agent = z.infer<typeof agentSchema>

/** GET /v1/agents. */
export const agentListSchema = strict({
  agents: z.array(agentSchema),
  seats: strict({ used: z.int(), max: z.int() }).describe('Live ones, and how many the plan has room for.'),
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

export const keyCreatedSchema = strict({
  key: agentSchema,
  secret: z.string().describe('The key itself. It is shown this once.'),
}).meta({ id: 'KeyCreated' })
export type KeyCreated = z.infer<typeof keyCreatedSchema>

/** PATCH /v1/keys/{id} and /v1/agents/{id}. */
export const agentChangeSchema = strict({
  name: name.optional(),
  policy: policyChangeSchema.optional().describe('What is left out of it stays as it is.'),
}).meta({ id: 'AgentChange' })
export type AgentChange = z.infer<typeof agentChangeSchema>

export const agentChangedSchema = strict({ agent: agentSchema }).meta({ id: 'AgentChanged' })
export type AgentChanged = z.infer<typeof agentChangedSchema>

export const agentRevokedSchema = strict({ ok: z.literal(true) }).meta({ id: 'AgentRevoked' })
export type AgentRevoked = z.infer<typeof agentRevokedSchema>
