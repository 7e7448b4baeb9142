// What things cost (spec 4.4, design 5).

import { z } from 'zod'
import { cents, strict } from './fields.ts'
import { sizes } from './policy.ts'

/** GET /v1/pricing. */
export const pricingSchema = strict({
  currency: z.literal('eur'),
  sizes: z
    .array(
      strict({
        size: z.enum(sizes),
        vcpu: z.number(),
        memoryMb: z.int(),
        diskGb: z.int(),
        centsPerHour: cents.describe('While it runs; asleep or stopped it costs nothing.'),
      }),
    )
    .describe('From the smallest to the largest.'),
  volumeCentsPerGbMonth: cents.describe('For 30 days, awake or asleep, until the unit is destroyed.'),
  planDiskGb: strict({ hobby: z.int(), pro: z.int(), team: z.int() }).describe(
    'What the disks and volumes of a team’s units may be together, by its plan.',
  ),
  freeCreditsOnVerifyCents: cents.describe('Once for each address that proves itself.'),
}).meta({ id: 'Pricing' })
export type Pricing = z.infer<typeof pricingSchema>
