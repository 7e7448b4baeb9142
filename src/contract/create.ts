// POST /v1/units, form A: from a spec (spec 2.4).

import { z } from 'zod'
import { endpointModes } from './endpoint.ts'
import { strict } from './fields.ts'
import { limits } from './limits.ts'
import { nameSchema, unitSpecSchema } from './unit-spec.ts'

/** What makes units answers once they are ready, or after a while (spec 2.4, 2.7). */
export const waitFields = {
  wait: z.boolean().default(true).describe('Answer once the units are ready.'),
  waitTimeoutMs: z
    .int()
    .min(0)
    .max(limits.waitTimeoutMs.max)
    .default(limits.waitTimeoutMs.default)
    .describe('A unit still creating after this is on its way.'),
}

export const createSchema = strict({
  spec: unitSpecSchema,
  stack: nameSchema.optional().describe('Name of a stack; created if absent.'),
  expose: z
    .enum(endpointModes)
    .optional()
    .describe(
      'Publish as it is created: `spec.expose`, or the only one of `spec.ports`. Answered as `outputs.URL`.',
    ),
  ...waitFields,
}).meta({ id: 'Create' })

export type Create = z.infer<typeof createSchema>
