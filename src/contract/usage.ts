// What a team has used (spec 4.5, design 5).

import { z } from 'zod'
import { cents, queryInteger, strict } from './fields.ts'
import { limits } from './limits.ts'

/** GET /v1/usage. */
export const usageQuerySchema = strict({
  days: queryInteger(1, limits.usageDays.max, limits.usageDays.default).describe('So many up to today.'),
})
export type UsageQuery = z.infer<typeof usageQuerySchema>

const seconds = z.number().describe('Seconds that units of this size ran.')

export const usageSchema = strict({
  days: z
    .array(
      strict({
        date: z.iso.date(),
        costCents: cents.describe('Of machines and volumes.'),
        unitSeconds: strict({ nano: seconds, small: seconds, medium: seconds, large: seconds }),
      }),
    )
    .describe('Days of UTC, today last; those without any use, too.'),
  totalCents: cents,
}).meta({ id: 'Usage' })
export type Usage = z.infer<typeof usageSchema>
