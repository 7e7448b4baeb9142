// POST /v1/units/{id}/exec (spec 4.2): its body, its answer and the events of its stream (design 5).

import { z } from 'zod'
import { processEnvSchema } from './env.ts'
import { argument, strict, text } from './fields.ts'
import { limits } from './limits.ts'
import { commandUserSchema } from './unit-user.ts'

export const execSchema = strict({
  cmd: z
    .array(argument, {
      error: ({ input }) =>
        typeof input === 'string'
          ? 'must be an array of arguments, run without a shell; for a shell line send ["sh", "-c", "…"]'
          : undefined,
    })
    .min(1, 'must have at least 1 item')
    .max(limits.execArgvItems, `must have at most ${limits.execArgvItems} items`)
    .refine((cmd) => cmd[0] !== '', { error: 'the first item must name a command' }),
  cwd: text(limits.pathLength)
    .regex(/^\//, 'must be absolute, such as /app')
    .optional()
    .describe("Default: the working directory of the unit's own process."),
  env: processEnvSchema.optional().describe("Added to the unit's environment, and overrides it."),
  timeoutMs: z
    .int()
    .min(limits.execTimeoutMs.min)
    .max(limits.execTimeoutMs.max)
    .default(limits.execTimeoutMs.default),
  stdin: z.string().max(limits.execStdinLength).optional(),
  user: commandUserSchema,
  encoding: z
    .literal('base64')
    .optional()
    .describe(
      'To have `stdout` and `stderr` of the answer in base64, byte for byte. A stream has base64 where it needs it.',
    ),
}).meta({ id: 'Exec' })

export type Exec = z.infer<typeof execSchema>

export const execResultSchema = strict({
  exitCode: z.int(),
  stdout: z.string().describe('As UTF-8; invalid bytes become U+FFFD.'),
  stderr: z.string(),
  timedOut: z.boolean(),
  truncated: z.boolean().describe('Whether stdout or stderr was longer than 1 MB and was cut.'),
  encoding: z.literal('base64').optional().describe('Present if both are in base64, as the call asked.'),
}).meta({ id: 'ExecResult' })

export type ExecResult = z.infer<typeof execResultSchema>

/** Events `stdout` and `stderr` of the stream. */
export const execOutputEventSchema = strict({
  data: z.string(),
  encoding: z.literal('base64').optional(),
}).meta({
  id: 'ExecOutputEvent',
})
export type ExecOutputEvent = z.infer<typeof execOutputEventSchema>

/** Event `exit`, the last of a successful stream; a failed stream ends with `error` and an error envelope. */
export const execExitEventSchema = strict({
  exitCode: z.int(),
  timedOut: z.boolean(),
  truncated: z.boolean(),
}).meta({ id: 'ExecExitEvent' })
