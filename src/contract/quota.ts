// What a credential may still spend and run (spec 4.5, design 5).

import { z } from 'zod'
import { egressSchema } from './egress.ts'
import { cents, strict, timestamp } from './fields.ts'
import { rateClasses, sizes } from './policy.ts'

/** GET /v1/quota. */
export const quotaSchema = strict({
  units: strict({ live: z.int(), max: z.int() }).describe(
    'Units that are creating, starting, running or stopping.',
  ),
  disk: strict({ promisedGb: z.int(), maxGb: z.int() }).describe(
    'The disks and volumes of all units of the team, including sleeping and stopped ones.',
  ),
  spendToday: strict({
    cents,
    capCents: z.int().nullable().describe('Null for a session: only the limits of its team apply.'),
    resetsAt: timestamp,
  }),
  creditBalanceCents: cents.describe('The balance of the team.'),
  allowedSizes: z.array(z.enum(sizes)),
  allowedRegistries: z.array(z.string()),
  maxSleep: z.string().describe('The longest idle window that the credential may set.'),
  expiresAt: timestamp.nullable(),
  egress: egressSchema.describe('The most that a unit of the credential may reach.'),
  allowedSecrets: z
    .array(z.string())
    .describe('The secrets of the team that units of the credential may bind; `*` stands for all.'),
  allowNested: z.boolean().describe('Whether containers may run in units of the credential.'),
  rates: z
    .array(
      strict({
        name: z.enum(rateClasses),
        limit: z.int().describe('Calls per minute.'),
        remaining: z.int(),
        resetsAt: timestamp.describe('When the whole limit is available again.'),
      }),
    )
    .describe('The rate limits of the credential. This call is already counted.'),
}).meta({ id: 'Quota' })
export type Quota = z.infer<typeof quotaSchema>
