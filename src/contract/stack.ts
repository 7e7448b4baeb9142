// Units that share a private network (spec 2.13, design 5).

import { z } from 'zod'
import { strict, timestamp } from './fields.ts'
import { unitSchema } from './unit.ts'
import { nameSchema } from './unit-spec.ts'

export const stackSchema = strict({
  id: z.string(),
  name: nameSchema,
  teamId: z.string(),
  createdAt: timestamp,
  units: z.array(unitSchema),
}).meta({ id: 'Stack' })

export type Stack = z.infer<typeof stackSchema>
