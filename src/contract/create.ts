// POST /v1/units, form A: from a spec (spec 2.4).

import { z } from 'zod'
import { endpointModes } from './endpoint.ts'
import { strict } from './fields.ts'
import { limits } from './limits.ts'
import { nameSchema, unitSpecSchema } from './unit-spec.ts'

export const createSchema = strict({
  spec: unitSpecSchema,
  stack: nameSchema.optional().describe('Name of a stack; created if absent.'),
  expose: z
    .enum(endpointModes)
    .optional()
    .describe(
      'Publish as it is created: `spec.expose`, or the only one of `spec.ports`. Answered as `outputs.URL`.',
    ),
  wait: z.boolean().default(true).describe('Answer once the units are ready.'),
  waitTimeoutMs: z
    .int()
    .min(0)
    .max(limits.waitTimeoutMs.max)
    .default(limits.waitTimeoutMs.default)
    .describe('A unit still creating after this is on its way.'),
}).meta({ id: 'Create' })

export type Create = z.infer<typeof createSchema>
