// The usage of a team (spec 4.5, design 5).

import { z } from 'zod'
import { cents, queryInteger, strict } from './fields.ts'
import { limits } from './limits.ts'

/** GET /v1/usage. */
export const usageQuerySchema = strict({
  days: queryInteger(1, limits.usageDays.max, limits.usageDays.default).describe(
    'The number of days, up to and including today.',
  ),
})
export type UsageQuery = z.infer<typeof usageQuerySchema>

const seconds = z.number().describe('Seconds that units of this size ran.')

export const usageSchema = strict({
  days: z
    .array(
      strict({
        date: z.iso.date(),
        costCents: cents.describe('The cost of machines and volumes.'),
        unitSeconds: strict({ nano: seconds, small: seconds, medium: seconds, large: seconds }),
      }),
    )
    .describe('Days in UTC, today last, including days without usage.'),
  totalCents: cents,
}).meta({ id: 'Usage' })
export type Usage = z.infer<typeof usageSchema>
