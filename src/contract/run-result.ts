// The answer to a create (spec 2.5).

import { z } from 'zod'
import { strict } from './fields.ts'
import { unitSchema } from './unit.ts'

export const runResultSchema = strict({
  units: z.array(unitSchema),
  outputs: z
    .record(z.string(), z.string())
    .describe('Generated secrets, which only this answer shows, and `URL` if the unit is published.'),
  recipe: z.string().nullable(),
  costLine: z.string().describe('Cost and sleep in words.'),
}).meta({ id: 'RunResult' })

export type RunResult = z.infer<typeof runResultSchema>
