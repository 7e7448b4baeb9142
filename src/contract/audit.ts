// An event of the audit log (spec 2.12, design 5): one for each authenticated call.

import { z } from 'zod'
import { cents, queryCursor, queryFlag, queryInteger, strict, text, timestamp } from './fields.ts'
import { limits } from './limits.ts'

const auditEventSchema = strict({
  id: z.string(),
  at: timestamp.describe('When the call arrived.'),
  credential: strict({
    id: z.string(),
    kind: z.enum(['key', 'oauth', 'session']),
    name: z.string(),
  }).describe('The credential of the call, with its name at that time.'),
  userId: z.string().nullable().describe('The person behind the credential.'),
  action: z.string(),
  target: z
    .string()
    .nullable()
    .describe('The id of the unit, stack, key or other object that the call was about.'),
  targetName: z
    .string()
    .nullable()
    .describe('The name of that unit, stack or key of the team, also if it is gone; null for anything else.'),
  input: z
    .record(z.string(), z.unknown())
    .nullable()
    .describe('The input of the call: contents by size, environment variables by name, passwords masked.'),
  status: z
    .int()
    .nullable()
    .describe('The status of the answer; null if the service ended before it could answer.'),
  errorCode: z.string().nullable(),
  durationMs: z.number().nullable(),
  costDeltaCents: cents,
  via: z.enum(['api', 'dashboard', 'mcp', 'e2b']),
  agentName: z.string().nullable(),
  agentVersion: z.string().nullable(),
  userAgent: z.string().nullable(),
  requestId: z.string(),
}).meta({ id: 'AuditEvent' })
export type AuditEvent = z.infer<typeof auditEventSchema>

const moment = z.iso.datetime({ offset: true })

/** GET /v1/audit. */
export const auditQuerySchema = strict({
  limit: queryInteger(1, limits.pageSize.max, limits.pageSize.default),
  cursor: queryCursor,
  key: text(100).optional().describe('Only calls made with the key of this id.'),
  agent: text(200).optional().describe('Only calls of the agent of this name.'),
  action: text(100).optional().describe('Only calls of this action, such as `unit.create`.'),
  target: text(100).optional().describe('Only calls about the unit, stack, key or other object of this id.'),
  since: moment.optional().describe('Only calls that arrived then or later.'),
  until: moment.optional().describe('Only calls that arrived before then.'),
  changes: queryFlag.describe('Only calls of actions that change something.'),
  failed: queryFlag.describe('Only calls that were answered with an error.'),
})
export type AuditQuery = z.infer<typeof auditQuerySchema>

export const auditListSchema = strict({
  events: z.array(auditEventSchema),
  next: z.string().nullable(),
}).meta({ id: 'AuditList' })
export type AuditList = z.infer<typeof auditListSchema>
