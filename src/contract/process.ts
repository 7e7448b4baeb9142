// /v1/units/{id}/processes: commands that outlive the call that begins them (docs/processes.md).

import { z } from 'zod'
import { processEnvSchema } from './env.ts'
import { execSchema } from './exec.ts'
import { queryFlag, queryInteger, strict, timestamp } from './fields.ts'
import { limits } from './limits.ts'

export const processStartSchema = strict({
  cmd: execSchema.shape.cmd,
  cwd: execSchema.shape.cwd,
  env: processEnvSchema.default({}).describe("Over the unit's own."),
  stdin: z
    .string()
    .refine((stdin) => Buffer.byteLength(stdin) <= limits.processStdinBytes, {
      error: `must be at most ${limits.processStdinBytes} bytes; write more into a file of the unit`,
    })
    .optional()
    .describe('What it finds on standard input, which then ends.'),
  keepsAwake: z
    .boolean()
    .default(false)
    .describe('Whether the unit stays awake while it runs, for an hour at most.'),
}).meta({ id: 'ProcessStart' })
export type ProcessStart = z.infer<typeof processStartSchema>

export const processSchema = strict({
  id: z.string(),
  unitId: z.string(),
  cmd: z.array(z.string()).describe('Without what looks like a password, and cut where it is long.'),
  cwd: z.string().nullable(),
  keepsAwake: z.boolean(),
  state: z
    .enum(['running', 'exited', 'lost'])
    .describe('`lost`: the unit slept without it, was started anew or copied, or nobody saw how it ended.'),
  exitCode: z.int().nullable().describe('128 + n for signal n; 137 too when the unit was stopped under it.'),
  pid: z.int().nullable().describe('Within the unit; its process group has the same.'),
  startedAt: timestamp,
  endedAt: timestamp.nullable(),
  output: strict({ from: z.int(), to: z.int() }).describe('The offsets of the bytes that are kept.'),
}).meta({ id: 'Process' })
export type Process = z.infer<typeof processSchema>

export const processListSchema = strict({
  processes: z.array(processSchema).describe('Oldest first.'),
}).meta({ id: 'ProcessList' })
export type ProcessList = z.infer<typeof processListSchema>

const signals = ['HUP', 'INT', 'QUIT', 'KILL', 'USR1', 'USR2', 'TERM', 'STOP', 'CONT'] as const

export const processSignalSchema = strict({
  signal: z
    .enum(signals, { error: `must be one of ${signals.join(', ')}` })
    .default('TERM')
    .describe('For its process group; KILL is for all that came of it.'),
}).meta({ id: 'ProcessSignal' })
export type ProcessSignal = z.infer<typeof processSignalSchema>

/** Of bytes since a process began. */
const offset = z
  .string()
  .regex(/^[0-9]{1,15}$/, 'must be an offset, such as the `next` of an earlier answer')
  .transform(Number)

export const processOutputQuerySchema = strict({
  after: offset
    .prefault('0')
    .meta({ type: 'integer', minimum: 0, default: 0 })
    .describe('The `next` of an earlier answer; 0 for all that is kept.'),
  maxBytes: queryInteger(
    limits.processPageBytes.min,
    limits.processPageBytes.max,
    limits.processPageBytes.default,
  ),
  follow: queryFlag.describe('Stream what comes as Server-Sent Events.'),
})
export type ProcessOutputQuery = z.infer<typeof processOutputQuerySchema>

export const processPieceSchema = strict({
  stream: z.enum(['stdout', 'stderr']),
  data: z.string(),
  encoding: z.literal('base64').optional().describe('Where it is no UTF-8.'),
}).meta({ id: 'ProcessPiece' })

export const processOutputSchema = strict({
  output: z.array(processPieceSchema).describe('In the order it came.'),
  next: z.int().describe('Send it as `after` for what comes after this.'),
  dropped: z.int().describe('Bytes between `after` and `next` that were no longer kept.'),
  state: processSchema.shape.state.describe(
    'When it is not `running` and `output` is empty, there is no more.',
  ),
  exitCode: processSchema.shape.exitCode,
}).meta({ id: 'ProcessOutput' })
export type ProcessOutputPage = z.infer<typeof processOutputSchema>

/** Event `end` of followed output. */
export const processEndSchema = processOutputSchema
  .pick({ state: true, exitCode: true })
  .meta({ id: 'ProcessEnd' })
