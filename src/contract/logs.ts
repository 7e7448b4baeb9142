// GET /v1/units/{id}/logs (spec 4.2, design 5).

import { z } from 'zod'
import { queryFlag, queryInteger, strict, text, timestamp } from './fields.ts'
import { limits } from './limits.ts'

export const logQuerySchema = strict({
  since: text(200)
    .optional()
    .describe('The `next` of an earlier answer, or an ISO time: only later lines are returned.'),
  limit: queryInteger(1, limits.pageSize.max, limits.pageSize.default),
  follow: queryFlag.describe('Whether to stream new lines as Server-Sent Events.'),
})
export type LogQuery = z.infer<typeof logQuerySchema>

export const logLineSchema = strict({
  at: timestamp,
  stream: z.enum(['stdout', 'stderr']),
  text: z.string(),
  continues: z
    .literal(true)
    .optional()
    .describe('The line is longer than 256 KB and continues in the next line of the same stream.'),
}).meta({ id: 'LogLine' })
export type LogLine = z.infer<typeof logLineSchema>

export const logPageSchema = strict({
  lines: z.array(logLineSchema),
  next: z.string().nullable().describe('Send it as `since` to get the lines after these.'),
}).meta({ id: 'LogPage' })
export type LogPage = z.infer<typeof logPageSchema>

/** An event of a followed log: a line with the cursor to resume after it, then the reason why the log ended. */
export type LogEvent = { kind: 'line'; cursor: string; line: LogLine } | { kind: 'end'; reason: string }
