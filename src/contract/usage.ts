// The usage of a team (spec 4.5, design 5).

import { z } from 'zod'
import { cents, queryInteger, strict } from './fields.ts'
import { limits } from './limits.ts'

export const usageParts = ['agent', 'stack', 'unit'] as const
export type UsagePart = (typeof usageParts)[number]

/** GET /v1/usage. */
export const usageQuerySchema = strict({
  days: queryInteger(1, limits.usageDays.max, limits.usageDays.default).describe(
    'The number of days, up to and including today.',
  ),
  by: z.enum(usageParts).optional().describe('Also what each of these had of a day.'),
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
        parts: z
          .array(strict({ id: z.string(), name: z.string(), costCents: cents }))
          .optional()
          .describe(
            'With `by`: what the ten with the greatest cost of all these days cost on this one, greatest of all first; those without cost are left out. An agent is a key, a connected agent, or a person.',
          ),
        restCents: cents.optional().describe('With `by`: what all others cost on this day.'),
      }),
    )
    .describe('Days in UTC, today last, including days without usage.'),
  totalCents: cents,
}).meta({ id: 'Usage' })
export type Usage = z.infer<typeof usageSchema>
