// Forks: the bodies and answers (spec 2.7).

import { z } from 'zod'
import { waitFields } from './create.ts'
import { processEnvSchema } from './env.ts'
import { strict } from './fields.ts'
import { metadataSchema } from './metadata.ts'
import { sleepSchema } from './sleep.ts'
import { timeToLiveOfCopyFields } from './time-to-live.ts'
import { copiedKinds, unitSchema } from './unit.ts'
import { nameSchema } from './unit-spec.ts'

const ofCopies = {
  sleep: sleepSchema.optional().describe("Default: the source's."),
  metadata: metadataSchema.optional().describe("The labels of a copy. Default: the source's."),
  ...timeToLiveOfCopyFields,
}

/** POST /v1/units/{id}/fork. */
export const unitForkSchema = strict({
  name: nameSchema.optional().describe("Default: a free name derived from the source's."),
  stack: nameSchema.optional().describe("Name of a stack, created if absent. Default: the source's stack."),
  env: processEnvSchema
    .optional()
    .describe(
      "Variables beside the source's, or in place of those of the same name. Processes that go on in the copy keep the environment that they have.",
    ),
  ...ofCopies,
  ...waitFields,
}).meta({ id: 'UnitFork' })
export type UnitFork = z.infer<typeof unitForkSchema>

/** POST /v1/stacks/{id}/fork. */
export const stackForkSchema = strict({
  into: nameSchema
    .optional()
    .describe("Name of the new stack. Default: a free name derived from the source's."),
  ...ofCopies,
  ...waitFields,
}).meta({ id: 'StackFork' })
export type StackFork = z.infer<typeof stackForkSchema>

export const forkResultSchema = strict({
  units: z.array(unitSchema),
  copied: z
    .record(z.string(), z.enum(copiedKinds))
    .describe('What was copied of each unit, by the name of the unit.'),
  outputs: z.record(z.string(), z.string()),
  stack: z.string().describe('Name of the stack of the copies.'),
  skipped: z.array(z.string()).describe('Units that were not copied, as `NAME: REASON`.'),
  costLine: z.string().describe('Cost and sleep in words.'),
}).meta({ id: 'ForkResult' })
export type ForkResult = z.infer<typeof forkResultSchema>
