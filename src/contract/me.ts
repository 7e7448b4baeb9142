// The account of the signed-in person (spec 2.10, 4.1).

import { z } from 'zod'
import { cents, nameLine, strict } from './fields.ts'
import { limits } from './limits.ts'
import { regionSchema } from './region.ts'
import { teamSchema } from './team.ts'

export const providers = ['github', 'google'] as const
export type Provider = (typeof providers)[number]

/** GET /v1/auth/providers. */
export const providerListSchema = strict({
  providers: z.array(z.enum(providers)).describe('The providers that people can sign in with.'),
}).meta({ id: 'ProviderList' })

/** GET /v1/me. */
export const meSchema = strict({
  user: strict({
    id: z.string(),
    email: z.string(),
    name: z.string(),
    emailVerified: z.boolean(),
    admin: z.boolean().describe('Whether this person operates the service.'),
  }).meta({ id: 'User' }),
  teams: z.array(teamSchema),
  currentTeamId: z.string().describe('The team that calls without `x-berth-team` act in.'),
  regions: z.array(regionSchema),
  freeCreditsOnVerifyCents: cents,
  apiUrl: z.string(),
  support: strict({
    form: z
      .boolean()
      .describe('Whether `POST /v1/support` is mailed. Without a mail server it stays a file on the server.'),
    email: z.string().nullable().describe('The address of support, if the operator has set one.'),
  }).meta({ id: 'MeSupport' }),
  payments: z.boolean().describe('Whether credits can be bought.'),
  maxSleep: z.string().describe('The longest idle window that a unit of the current team may have.'),
}).meta({ id: 'Me' })
export type Me = z.infer<typeof meSchema>

/** PATCH /v1/me. */
export const meChangeSchema = strict({
  name: nameLine(1, limits.userNameLength),
}).meta({ id: 'MeChange' })
export type MeChange = z.infer<typeof meChangeSchema>

export const meChangedSchema = strict({ id: z.string(), name: z.string() }).meta({ id: 'MeChanged' })
export type MeChanged = z.infer<typeof meChangedSchema>
