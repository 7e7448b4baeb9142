// A stack, as every answer shows it (spec 2.13, design 5).

import { z } from 'zod'
import { queryCursor, queryInteger, strict, timestamp } from './fields.ts'
import { limits } from './limits.ts'
import { unitSchema } from './unit.ts'
import { nameSchema } from './unit-spec.ts'

export const stackSchema = strict({
  id: z.string(),
  name: z.string(),
  teamId: z.string(),
  createdAt: timestamp,
  units: z.array(unitSchema).describe('Oldest first.'),
}).meta({ id: 'Stack' })
export type Stack = z.infer<typeof stackSchema>

/** POST /v1/stacks. */
export const stackCreateSchema = strict({ name: nameSchema }).meta({ id: 'StackCreate' })
export type StackCreate = z.infer<typeof stackCreateSchema>

/** GET /v1/stacks. */
export const stackListQuerySchema = strict({
  limit: queryInteger(1, limits.pageSize.max, limits.pageSize.default),
  cursor: queryCursor,
})
export type StackListQuery = z.infer<typeof stackListQuerySchema>

export const stackListSchema = strict({ stacks: z.array(stackSchema), next: z.string().nullable() }).meta({
  id: 'StackList',
})
export type StackList = z.infer<typeof stackListSchema>
