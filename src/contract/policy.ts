// What bounds a credential (spec 2.8).

import { z } from 'zod'

export const sizes = ['nano', 'small', 'medium', 'large'] as const
export type Size = (typeof sizes)[number]

export const defaultRegistries = ['docker.io', 'ghcr.io', 'quay.io']

export const policySchema = z.strictObject({
  maxConcurrentUnits: z.int().min(0).default(5),
  dailySpendCapCents: z.int().min(0).default(1000),
  allowedSizes: z.array(z.enum(sizes)).default(['nano', 'small', 'medium']),
  allowedRegistries: z.array(z.string().min(1).max(255)).default(defaultRegistries),
  maxSleep: z
    .string()
    .regex(/^(?:never|[1-9][0-9]{0,4}[mhd])$/)
    .default('never'),
  expiresAt: z.iso.datetime().nullable().default(null),
})

export type Policy = z.infer<typeof policySchema>
