// Forks: what is asked for, and what is answered (spec 2.7).

import { z } from 'zod'
import { waitFields } from './create.ts'
import { strict } from './fields.ts'
import { sleepSchema } from './sleep.ts'
import { unitSchema } from './unit.ts'
import { nameSchema } from './unit-spec.ts'

const sleep = sleepSchema.optional().describe("Left out, the source's.")

/** POST /v1/units/{id}/fork. */
export const unitForkSchema = strict({
  name: nameSchema.optional().describe("Left out, one made of the source's that is free."),
  stack: nameSchema.optional().describe("Name of a stack, created if absent. Left out, the source's."),
  sleep,
  ...waitFields,
}).meta({ id: 'UnitFork' })
export type UnitFork = z.infer<typeof unitForkSchema>

/** POST /v1/stacks/{id}/fork. */
export const stackForkSchema = strict({
  into: nameSchema
    .optional()
    .describe("Name of the new stack. Left out, one made of the source's that is free."),
  sleep,
  ...waitFields,
}).meta({ id: 'StackFork' })
export type StackFork = z.infer<typeof stackForkSchema>

/** What a copy has of its source, never more than was done: `config` is its spec alone. */
export const copiedKinds = ['memory', 'disk', 'config'] as const
export type Copied = (typeof copiedKinds)[number]

export const forkResultSchema = strict({
  units: z.array(unitSchema),
  copied: z.record(z.string(), z.enum(copiedKinds)).describe('By name of a unit.'),
  outputs: z.record(z.string(), z.string()),
  stack: z.string().describe('Name of the stack that the copies are in.'),
  skipped: z.array(z.string()).describe('Units that were not copied, as `NAME: REASON`.'),
  costLine: z.string().describe('Cost and sleep in words.'),
}).meta({ id: 'ForkResult' })
export type ForkResult = z.infer<typeof forkResultSchema>
