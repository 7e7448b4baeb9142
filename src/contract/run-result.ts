// What a create answers (spec 2.5).

import { z } from 'zod'
import { strict } from './fields.ts'
import { unitSchema } from './unit.ts'

export const runResultSchema = strict({
  units: z.array(unitSchema),
  outputs: z
    .record(z.string(), z.string())
    .describe('Generated secrets, shown this once, and `URL` when published.'),
  recipe: z.string().nullable(),
  costLine: z.string().describe('Cost and sleep in words.'),
}).meta({ id: 'RunResult' })

export type RunResult = z.infer<typeof runResultSchema>
