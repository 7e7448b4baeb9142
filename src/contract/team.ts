// A team as its members see it (spec 2.10).

import { z } from 'zod'
import { cents, strict } from './fields.ts'
import { regionIds } from './region.ts'

export const plans = ['hobby', 'pro', 'team'] as const
export const currencies = ['eur', 'usd'] as const
export const roles = ['owner', 'admin', 'member'] as const

export const teamSchema = strict({
  id: z.string(),
  slug: z.string(),
  name: z.string(),
  personal: z.boolean(),
  plan: z.enum(plans),
  region: z.enum(regionIds).describe('Where new units run.'),
  currency: z.enum(currencies).describe('What money is shown in; amounts are in euro cents all the same.'),
  role: z.enum(roles).describe("The caller's own."),
  creditBalanceCents: cents,
  paysAsItGoes: z.boolean(),
}).meta({ id: 'Team' })
export type Team = z.infer<typeof teamSchema>
