// GET /v1/units/{id}/exec, a WebSocket: what it is asked, and its frames of text. Frames of bytes begin with the number of
// their stream (docs/terminal.md).

import { z } from 'zod'
import { processEnvSchema } from './env.ts'
import { argument, strict, text } from './fields.ts'
import { limits } from './limits.ts'
import { commandUserSchema } from './unit-user.ts'

/** A query that has a field once has its value, and not a list of it. */
const list = <T extends z.ZodType>(item: T) => z.union([item.transform((one) => [one]), z.array(item)])

const side = z
  .string()
  .regex(/^[1-9]\d{0,3}$/, 'must be a whole number')
  .transform(Number)
  .pipe(z.int().max(limits.terminalSide))

export const terminalQuerySchema = strict({
  tty: z.enum(['0', '1']).default('1').describe('`0`: no terminal, and standard error apart.'),
  cols: side.default(80),
  rows: side.default(24),
  cmd: list(argument)
    .pipe(z.array(z.string()).min(1).max(limits.execArgvItems))
    .refine((cmd) => cmd[0] !== '', { error: 'the first item must name a command' })
    .optional()
    .describe('Once for each argument. Default: bash where the unit has it, else sh.'),
  cwd: text(limits.pathLength)
    .regex(/^\//, 'must be absolute, such as /app')
    .optional()
    .describe("Default: the working directory of the unit's own process."),
  env: list(text(limits.envValueLength).regex(/^[^=]+=/s, 'must be NAME=value'))
    .transform((entries) =>
      Object.fromEntries(
        entries.map((entry) => [entry.split('=')[0] ?? '', entry.slice(entry.indexOf('=') + 1)]),
      ),
    )
    .pipe(processEnvSchema)
    .optional()
    .describe("`NAME=value`, once for each. Added to the unit's environment, and overrides it."),
  user: commandUserSchema,
  pid: z
    .enum(['0', '1'])
    .default('0')
    .describe('`1`: the first message is `{"pid":42}`, the number that the command has in the unit.'),
  session: z
    .string()
    .regex(
      new RegExp(`^[A-Za-z0-9_-]{1,${limits.terminalSessionNameLength}}$`),
      `must be 1 to ${limits.terminalSessionNameLength} letters, digits, "-" and "_"`,
    )
    .optional()
    .describe(
      'A name of your choice. The command then outlives its client by ten minutes. A call of the same credential with the same name takes it over, and is shown what it printed last.',
    ),
  team: z
    .string()
    .max(64)
    .optional()
    .describe('As the header `x-berth-team`, which browsers cannot send here.'),
})

export type TerminalQuery = z.infer<typeof terminalQuerySchema>

/** The first byte of a frame of bytes. */
export const terminalStreams = { stdin: 0, stdout: 1, stderr: 2 } as const

const signals = ['HUP', 'INT', 'QUIT', 'TERM', 'USR1', 'USR2', 'KILL'] as const
const size = z.int().min(1).max(limits.terminalSide)

/** A frame of text that a client sends. */
export const terminalFrameSchema = z.union([
  z.strictObject({ resize: z.tuple([size, size]).describe('Columns and rows.') }),
  z.strictObject({ signal: z.enum(signals) }),
  z.strictObject({ eof: z.literal(true) }),
])
