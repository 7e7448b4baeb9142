// The limits of a credential (spec 2.8).

import { z } from 'zod'
import { openEgress } from '../lib/egress/rules.ts'
import { egressBoundSchema } from './egress.ts'
import { strict, text } from './fields.ts'
import { allowedSecretsSchema } from './secret.ts'
import { sleepSchema } from './sleep.ts'

export const sizes = ['nano', 'small', 'medium', 'large'] as const
export type Size = (typeof sizes)[number]

export const defaultRegistries = ['docker.io', 'ghcr.io', 'quay.io']

/** What the calls of a credential are counted as. Every call also counts as a request. */
export const rateClasses = ['requests', 'creations', 'execs'] as const
export type RateClass = (typeof rateClasses)[number]

const rate = z.int().min(1).max(1_000_000)

const fields = {
  maxConcurrentUnits: z.int().min(0),
  dailySpendCapCents: z.int().min(0),
  allowedSizes: z.array(z.enum(sizes)),
  allowedRegistries: z.array(text(255).min(1)),
  maxSleep: sleepSchema,
  expiresAt: z.iso.datetime({ offset: true }).nullable(),
  egress: egressBoundSchema,
  rates: strict({ requests: rate, creations: rate, execs: rate })
    .partial()
    .describe(
      'Calls a minute, of all kinds, those that make units, and commands. One that is left out is the rate of the service; `GET /v1/quota` has all of them.',
    ),
  allowNested: z.boolean().describe('Whether containers may run in its units: `nested` in their spec.'),
  allowedSecrets: allowedSecretsSchema.describe(
    'The secrets of the team that its units may bind. `*` stands for all, and for the right to put and delete them. Only an owner or admin may give it.',
  ),
}

export const policySchema = z.strictObject({
  maxConcurrentUnits: fields.maxConcurrentUnits.default(5),
  dailySpendCapCents: fields.dailySpendCapCents.default(1000),
  allowedSizes: fields.allowedSizes.default(['nano', 'small', 'medium']),
  allowedRegistries: fields.allowedRegistries.default(defaultRegistries),
  maxSleep: fields.maxSleep.default('never'),
  expiresAt: fields.expiresAt.default(null),
  egress: fields.egress.default(openEgress),
  allowedSecrets: fields.allowedSecrets.default([]),
  allowNested: fields.allowNested.default(false),
  rates: fields.rates.default({}),
})
export type Policy = z.infer<typeof policySchema>

/** The fields of a policy to change; omitted fields stay unchanged. */
export const policyChangeSchema = z.strictObject(fields).partial()
