// GET /v1/units/{id}/egress/log: what a unit reached and was refused (decisions/egress.md).

import { z } from 'zod'
import { seenDecisions, seenProtocols } from '../lib/egress/seen.ts'
import { queryFlag, queryInteger, strict, text, timestamp } from './fields.ts'
import { limits } from './limits.ts'

export const egressLogQuerySchema = strict({
  since: text(200)
    .optional()
    .describe('The `next` of an earlier answer, or an ISO time: only lines that are newer or have grown.'),
  limit: queryInteger(1, limits.pageSize.max, limits.pageSize.default),
  decision: z.enum(seenDecisions).optional().describe('Only lines with this decision.'),
  follow: queryFlag.describe('Whether to stream lines as Server-Sent Events, also when they have grown.'),
})
export type EgressLogQuery = z.infer<typeof egressLogQuerySchema>

export const egressLogLineSchema = strict({
  at: timestamp.describe('The minute that the line sums up.'),
  host: z
    .string()
    .nullable()
    .describe(
      'In lower-case ASCII. Null where the connection named none, or nothing that can be a public host. Null also in the line for all beyond those that a minute has lines for. And null for a minute in which the rules were not enforced: nothing listed was reached then.',
    ),
  address: z.string().nullable().describe('Where the newest of these connections led.'),
  port: z.int().nullable().describe('Null for a name that was refused when it was looked up.'),
  protocol: z
    .enum(seenProtocols)
    .describe(
      '`dns`: its look-ups, of names that are refused or are listed with another port than 80 and 443.',
    ),
  decision: z.enum(seenDecisions),
  rule: z.string().nullable().describe('The entry that allows it.'),
  reason: z.string().describe('Why, as a sentence.'),
  entry: z
    .string()
    .nullable()
    .describe('What to add to `allow` so that it is allowed; null where no entry would do that.'),
  secret: z.string().nullable().describe('The name of the secret that was put into its requests.'),
  bytesIn: z
    .int()
    .describe('From the host. Counted when a connection ends, in the minute in which it began.'),
  bytesOut: z.int().describe('To the host, likewise.'),
  count: z
    .int()
    .describe(
      'How many connections, requests on port 80, or look-ups. Zero in the line of a minute in which the rules were not enforced.',
    ),
}).meta({ id: 'EgressLogLine' })
export type EgressLogLine = z.infer<typeof egressLogLineSchema>

export const egressLogPageSchema = strict({
  lines: z.array(egressLogLineSchema),
  next: z
    .string()
    .nullable()
    .describe(
      'Send it as `since` to get the lines after these. A line of before comes again if it has grown.',
    ),
}).meta({ id: 'EgressLogPage' })
export type EgressLogPage = z.infer<typeof egressLogPageSchema>

/** Event `end` of a followed log. */
export const egressLogEndSchema = strict({
  reason: z.string().describe('Why the stream ended.'),
}).meta({ id: 'EgressLogEnd' })

export type EgressLogEvent =
  | { kind: 'line'; cursor: string; line: EgressLogLine }
  | { kind: 'end'; reason: string }
