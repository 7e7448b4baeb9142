// /v1/units/{id}/processes: commands that run on after the call that started them (docs/processes.md).

import { z } from 'zod'
import { processEnvSchema } from './env.ts'
import { execSchema } from './exec.ts'
import { optionalQueryInteger, queryFlag, queryInteger, strict, text, timestamp } from './fields.ts'
import { limits } from './limits.ts'
import { commandUserSchema } from './unit-user.ts'

/** Of the longest input in base64. */
const MAX_INPUT_LENGTH = Math.ceil(limits.processInputBytes / 3) * 4

const tagSchema = text(limits.processTagLength).min(1, 'must not be empty')

export const processStartSchema = strict({
  cmd: execSchema.shape.cmd,
  cwd: execSchema.shape.cwd,
  env: processEnvSchema.default({}).describe("Added to the unit's environment, and overrides it."),
  stdin: z
    .string()
    .refine((stdin) => Buffer.byteLength(stdin) <= limits.processStdinBytes, {
      error: `must be at most ${limits.processStdinBytes} bytes; write more into a file of the unit`,
    })
    .optional()
    .describe('The content of standard input, which then ends unless `takesInput`.'),
  takesInput: z
    .boolean()
    .default(false)
    .describe('Whether standard input stays open for POST /v1/units/{id}/processes/{processId}/input.'),
  keepsAwake: z
    .boolean()
    .default(false)
    .describe(
      'Whether the unit stays awake while the process runs, for an hour from its start; keep-awake renews it.',
    ),
  tag: tagSchema.optional().describe('A name of yours, by which lists can be filtered.'),
  user: commandUserSchema,
}).meta({ id: 'ProcessStart' })
export type ProcessStart = z.infer<typeof processStartSchema>

export const processSchema = strict({
  id: z.string(),
  unitId: z.string(),
  cmd: z
    .array(z.string())
    .describe('Anything that looks like a password is masked, and a long command is cut.'),
  cwd: z.string().nullable(),
  keepsAwake: z.boolean(),
  tag: z.string().nullable(),
  takesInput: z.boolean().describe('Whether its standard input is open to calls.'),
  awakeUntil: timestamp
    .nullable()
    .describe('Until when it keeps the unit awake while it runs; null if it does not.'),
  state: z
    .enum(['running', 'exited', 'lost'])
    .describe(
      '`lost`: the process did not survive a sleep, restart or fork of the unit, or its end was not observed.',
    ),
  exitCode: z.int().nullable().describe('128 + n for signal n; also 137 if the unit was stopped.'),
  pid: z.int().nullable().describe('The process id in the unit; also the id of its process group.'),
  startedAt: timestamp,
  endedAt: timestamp.nullable(),
  output: strict({ from: z.int(), to: z.int() }).describe('The offsets of the stored bytes.'),
}).meta({ id: 'Process' })
export type Process = z.infer<typeof processSchema>

export const processListQuerySchema = strict({
  tag: tagSchema.optional().describe('Only those with this tag.'),
})

export const processListSchema = strict({
  processes: z.array(processSchema).describe('Oldest first.'),
}).meta({ id: 'ProcessList' })
export type ProcessList = z.infer<typeof processListSchema>

/** POST /v1/units/{id}/processes/{processId}/input. */
export const processInputSchema = strict({
  data: z.string().max(MAX_INPUT_LENGTH).default('').describe('What to write, at most 256 KB.'),
  encoding: z.literal('base64').optional().describe('If `data` is base64, for bytes that are not text.'),
  end: z.boolean().default(false).describe('Whether standard input ends after `data`.'),
})
  .transform((given, context) => {
    const { data, encoding, end } = given
    const bytes = Buffer.from(data, encoding ?? 'utf8')
    if (encoding === 'base64' && bytes.toString('base64') !== data)
      context.addIssue({ code: 'custom', path: ['data'], message: 'must be whole base64' })
    if (bytes.length > limits.processInputBytes)
      context.addIssue({
        code: 'custom',
        path: ['data'],
        message: `must be at most ${limits.processInputBytes} bytes; send the rest in further calls`,
      })
    return { bytes, end }
  })
  .meta({ id: 'ProcessInput' })
export type ProcessInput = z.infer<typeof processInputSchema>

export const processInputTakenSchema = strict({
  taken: z
    .int()
    .describe(
      'How many bytes of `data` were written. If not all, the process did not read in time: send the rest again.',
    ),
}).meta({ id: 'ProcessInputTaken' })
export type ProcessInputTaken = z.infer<typeof processInputTakenSchema>

/** POST /v1/units/{id}/processes/{processId}/keep-awake. */
export const processKeepAwakeSchema = strict({
  forMs: z
    .int()
    .min(0)
    .max(limits.processAwakeMs)
    .default(limits.processAwakeMs)
    .describe('From now on; 0: no longer. Send it again before that is over to renew it.'),
}).meta({ id: 'ProcessKeepAwake' })

const signals = ['HUP', 'INT', 'QUIT', 'KILL', 'USR1', 'USR2', 'TERM', 'STOP', 'CONT'] as const

/** GET /v1/units/{id}/process-table. */
export const processTableSchema = strict({
  processes: z
    .array(
      strict({
        pid: z.int(),
        parentPid: z.int(),
        uid: z.int(),
        user: z.string().nullable().describe('The name of the uid in the unit; null if it has none.'),
        state: z.string().describe('One letter, as `ps` shows it: `R` runs, `S` sleeps, `Z` has ended.'),
        cmd: z
          .array(z.string())
          .describe('Anything that looks like a password is masked, and a long command is cut.'),
        processId: z
          .string()
          .nullable()
          .describe('The background process that it belongs to; null if it belongs to none.'),
        tag: z.string().nullable().describe('Of that background process.'),
      }).meta({ id: 'ProcessTableEntry' }),
    )
    .describe('By pid.'),
  truncated: z.boolean().describe('Whether there are more than could be listed.'),
}).meta({ id: 'ProcessTable' })
export type ProcessTable = z.infer<typeof processTableSchema>

export const pidSignalledSchema = strict({ pid: z.int() }).meta({ id: 'PidSignalled' })

export const processSignalSchema = strict({
  signal: z
    .enum(signals, { error: `must be one of ${signals.join(', ')}` })
    .default('TERM')
    .describe('Sent to the process group; KILL also reaches all descendants of the process.'),
}).meta({ id: 'ProcessSignal' })
export type ProcessSignal = z.infer<typeof processSignalSchema>

/** Counted in bytes since the process started. */
const offset = z
  .string()
  .regex(/^[0-9]{1,15}$/, 'must be an offset, such as the `next` of an earlier answer')
  .transform(Number)

export const processOutputQuerySchema = strict({
  after: offset
    .prefault('0')
    .meta({ type: 'integer', minimum: 0, default: 0 })
    .describe('The `next` of an earlier answer; 0 for everything that is stored.'),
  maxBytes: queryInteger(
    limits.processPageBytes.min,
    limits.processPageBytes.max,
    limits.processPageBytes.default,
  ),
  follow: queryFlag.describe('Whether to stream new output as Server-Sent Events.'),
  followMs: optionalQueryInteger(limits.followMs.min, limits.followMs.max).describe(
    'With `follow`: how long to stream new output, in milliseconds; absent: until the process ends.',
  ),
}).refine(({ follow, followMs }) => follow || followMs === undefined, {
  path: ['followMs'],
  error: 'requires follow=true',
})
export type ProcessOutputQuery = z.infer<typeof processOutputQuerySchema>

export const processPieceSchema = strict({
  stream: z.enum(['stdout', 'stderr']),
  data: z.string(),
  encoding: z.literal('base64').optional().describe('Present if the data is not UTF-8.'),
}).meta({ id: 'ProcessPiece' })

export const processOutputSchema = strict({
  output: z.array(processPieceSchema).describe('In the order it was printed.'),
  next: z.int().describe('Send it as `after` to get the output after this.'),
  dropped: z.int().describe('Bytes between `after` and `next` that were already deleted.'),
  state: processSchema.shape.state.describe(
    'If it is not `running` and `output` is empty, there is no more output.',
  ),
  exitCode: processSchema.shape.exitCode,
}).meta({ id: 'ProcessOutput' })
export type ProcessOutputPage = z.infer<typeof processOutputSchema>

/** Event `end` of followed output. With state `running` the time to follow was over first. */
export const processEndSchema = processOutputSchema
  .pick({ state: true, exitCode: true })
  .meta({ id: 'ProcessEnd' })
