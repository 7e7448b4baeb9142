// A team, as its members see it (spec 2.10).

import { z } from 'zod'
import { egressBoundSchema, egressSchema } from './egress.ts'
import { cents, nameLine, strict } from './fields.ts'
import { limits } from './limits.ts'
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
  region: z.enum(regionIds).describe('The region of new units.'),
  currency: z
    .enum(currencies)
    .describe('The currency in which pages show money; amounts in answers are always euro cents.'),
  role: z.enum(roles).describe("The caller's own."),
  creditBalanceCents: cents,
  paysAsItGoes: z.boolean(),
  egress: egressSchema.describe('The most that a unit of the team may reach.'),
}).meta({ id: 'Team' })
export type Team = z.infer<typeof teamSchema>

/** The answer to creating, changing and joining a team. */
export const teamAnswerSchema = strict({ team: teamSchema }).meta({ id: 'TeamAnswer' })
export type TeamAnswer = z.infer<typeof teamAnswerSchema>

const { min, max } = limits.teamNameLength

const teamName = nameLine(min, max)

/** POST /v1/teams. */
export const teamCreateSchema = strict({
  name: teamName,
  region: z.enum(regionIds).optional(),
  currency: z.enum(currencies).optional(),
}).meta({ id: 'TeamCreate' })
export type TeamCreate = z.infer<typeof teamCreateSchema>

export const narrowedSchema = z
  .array(strict({ id: z.string(), name: z.string() }))
  .describe('The units whose rules of egress became narrower with this change, or that lost a secret.')

/** The answer to PATCH /v1/teams/{id}. */
export const teamChangedSchema = strict({ team: teamSchema, narrowed: narrowedSchema }).meta({
  id: 'TeamChanged',
})
export type TeamChanged = z.infer<typeof teamChangedSchema>

/** PATCH /v1/teams/{id}. */
export const teamChangeSchema = strict({
  name: teamName.optional(),
  region: z.enum(regionIds).optional(),
  currency: z.enum(currencies).optional(),
  egress: egressBoundSchema
    .optional()
    .describe('The most that a unit of the team may reach. Units that may reach more are narrowed at once.'),
}).meta({ id: 'TeamChange' })
export type TeamChange = z.infer<typeof teamChangeSchema>
