// GET /v1/units/{id}/logs (spec 4.2, design 5).

import { z } from 'zod'
import { queryFlag, queryInteger, strict, text, timestamp } from './fields.ts'
import { limits } from './limits.ts'

export const logQuerySchema = strict({
  since: text(200).optional().describe('A `next` cursor of an earlier answer, or an ISO time.'),
  limit: queryInteger(1, limits.pageSize.max, limits.pageSize.default),
  follow: queryFlag.describe('Stream lines as Server-Sent Events as they come.'),
})
export type LogQuery = z.infer<typeof logQuerySchema>

export const logLineSchema = strict({
  at: timestamp,
  stream: z.enum(['stdout', 'stderr']),
  text: z.string(),
  continues: z
    .literal(true)
    .optional()
    .describe('The line is longer than 256 KB, and goes on in the next one of its stream.'),
}).meta({ id: 'LogLine' })
export type LogLine = z.infer<typeof logLineSchema>

export const logPageSchema = strict({
  lines: z.array(logLineSchema),
  next: z.string().nullable().describe('Send it as `since` for the lines after these.'),
}).meta({ id: 'LogPage' })
export type LogPage = z.infer<typeof logPageSchema>

/** What a followed log yields: lines with the cursor to resume after each, then why it ended. */
export type LogEvent = { kind: 'line'; cursor: string; line: LogLine } | { kind: 'end'; reason: string }
