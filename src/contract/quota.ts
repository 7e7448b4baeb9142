// What a credential may still spend and run (spec 4.5, design 5).

import { z } from 'zod'
import { cents, strict, timestamp } from './fields.ts'
import { sizes } from './policy.ts'

/** GET /v1/quota. */
export const quotaSchema = strict({
  units: strict({ live: z.int(), max: z.int() }).describe('Units that run, or are about to.'),
  disk: strict({ promisedGb: z.int(), maxGb: z.int() }).describe(
    'Disks and volumes of all units of the team that are there, asleep and stopped ones included.',
  ),
  spendToday: strict({
    cents,
    capCents: z.int().nullable().describe('Null for a session, which its team alone bounds.'),
    resetsAt: timestamp,
  }),
  creditBalanceCents: cents.describe('Of the team.'),
  allowedSizes: z.array(z.enum(sizes)),
  allowedRegistries: z.array(z.string()),
  maxSleep: z.string().describe('The longest window it may give a unit.'),
  expiresAt: timestamp.nullable(),
  rates: z
    .array(
      strict({
        name: z.enum(['requests', 'creations', 'execs']),
        limit: z.int().describe('A minute.'),
        remaining: z.int(),
        resetsAt: timestamp.describe('When all of it may be used again.'),
      }),
    )
    .describe('This call has been counted.'),
}).meta({ id: 'Quota' })
export type Quota = z.infer<typeof quotaSchema>
