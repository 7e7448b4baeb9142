// /v1/units/{id}/code: code that runs in contexts, which keep their variables (docs/guides/code.md).

import { z } from 'zod'
import { processEnvSchema } from './env.ts'
import { strict, text, timestamp } from './fields.ts'
import { limits } from './limits.ts'

export const codeLanguages = ['python', 'javascript', 'typescript', 'bash', 'r'] as const

const languageSchema = z.enum(codeLanguages)

export const codeRunSchema = strict({
  code: text(limits.codeLength),
  language: languageSchema
    .optional()
    .describe('Default: that of the context; without one, `python`. Each language has a context of its own.'),
  context: text(limits.nameLength)
    .optional()
    .describe('The id of a context. Default: one that the first run in the language makes.'),
  env: processEnvSchema.optional().describe('For this run alone; in Python only.'),
  timeoutMs: z
    .int()
    .min(limits.execTimeoutMs.min)
    .max(limits.codeTimeoutMs)
    .default(limits.execTimeoutMs.default)
    .describe('The code is interrupted then. A context that does not stop is begun anew.'),
}).meta({ id: 'CodeRun' })
export type CodeRun = z.infer<typeof codeRunSchema>

/** By MIME type: text as it is, what is not text in base64, JSON as data. */
export const codeDataSchema = z
  .record(z.string(), z.unknown())
  .describe(
    'The same value in several forms, by MIME type: text as it is, images in base64, JSON as data. HTML is what the code made: show it in a frame without rights only.',
  )

export const codeValueSchema = strict({
  data: codeDataSchema,
  main: z.boolean().describe('Whether it is the value of the last line, and not shown in between.'),
}).meta({ id: 'CodeValue' })
export type CodeValue = z.infer<typeof codeValueSchema>

export const codeFailureSchema = strict({
  name: z
    .string()
    .describe(
      'Such as `ZeroDivisionError`. `KernelDied`: the context was begun anew, without its variables.',
    ),
  value: z.string(),
  traceback: z.array(z.string()),
}).meta({ id: 'CodeFailure' })
export type CodeFailure = z.infer<typeof codeFailureSchema>

const ended = {
  context: z.string(),
  language: languageSchema,
  executionCount: z
    .int()
    .nullable()
    .describe('How often the context has run code; null if it was begun anew.'),
  timedOut: z.boolean(),
  truncated: z.boolean().describe('Whether there was more output, or were more results, than an answer has.'),
}

/** Event `begin`, the first of a stream: where the code runs. */
export const codeBeginSchema = strict({ context: z.string(), language: languageSchema }).meta({
  id: 'CodeBegin',
})

/** Event `end`, the last of a successful stream. */
export const codeEndSchema = strict(ended).meta({ id: 'CodeEnd' })
export type CodeEnd = z.infer<typeof codeEndSchema>

/** Events `stdout` and `stderr`. */
export const codePrintedSchema = strict({ data: z.string() }).meta({ id: 'CodePrinted' })

export const codeResultSchema = strict({
  ...ended,
  stdout: z.string(),
  stderr: z.string(),
  results: z.array(codeValueSchema).describe('In the order in which they came.'),
  error: codeFailureSchema.nullable(),
}).meta({ id: 'CodeResult' })
export type CodeResult = z.infer<typeof codeResultSchema>

export const codeContextCreateSchema = strict({
  language: languageSchema.default('python'),
  cwd: text(limits.pathLength)
    .regex(/^\//, 'must be absolute, such as /app')
    .optional()
    .describe('Default: `/home/user`.'),
  env: processEnvSchema.optional().describe("Added to the unit's environment, and overrides it."),
}).meta({ id: 'CodeContextCreate' })
export type CodeContextCreate = z.infer<typeof codeContextCreateSchema>

export const codeContextSchema = strict({
  id: z.string(),
  unitId: z.string(),
  language: languageSchema,
  cwd: z.string(),
  state: z
    .enum(['starting', 'idle', 'busy', 'lost'])
    .describe('`lost`: the unit was started again without its memory. A restart begins it anew.'),
  createdAt: timestamp,
}).meta({ id: 'CodeContext' })
export type CodeContext = z.infer<typeof codeContextSchema>

export const codeContextListSchema = strict({
  contexts: z.array(codeContextSchema).describe('Oldest first.'),
}).meta({ id: 'CodeContextList' })
export type CodeContextList = z.infer<typeof codeContextListSchema>
