// Prices (spec 4.4, design 5).

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
        centsPerHour: cents.describe(
          'The price while a unit runs; a sleeping or stopped unit costs nothing.',
        ),
      }),
    )
    .describe('From the smallest to the largest.'),
  volumeCentsPerGbMonth: cents.describe(
    'The price of 1 GB for 30 days, whether the unit runs or not, until it is destroyed.',
  ),
  planDiskGb: strict({ hobby: z.int(), pro: z.int(), team: z.int() }).describe(
    'How large the disks and volumes of all units of a team may be together, by plan.',
  ),
  freeCreditsOnVerifyCents: cents.describe('Given once for each verified mail address.'),
}).meta({ id: 'Pricing' })
export type Pricing = z.infer<typeof pricingSchema>
