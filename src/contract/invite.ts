// Invitations to join a team (spec 2.10, 4.1).

import { z } from 'zod'
import { emailPattern } from '../lib/email.ts'
import { strict, timestamp } from './fields.ts'
import { limits } from './limits.ts'
import { roles } from './team.ts'

export const inviteSchema = strict({
  id: z.string(),
  email: z.string(),
  role: z.enum(roles),
  invitedBy: z.string().nullable().describe('The id of the person who sent it.'),
  expiresAt: timestamp,
  createdAt: timestamp,
}).meta({ id: 'Invite' })
export type Invite = z.infer<typeof inviteSchema>

/** POST /v1/teams/{id}/invites. */
export const inviteCreateSchema = strict({
  email: z
    .email({ pattern: emailPattern, error: 'must be an email address' })
    .max(limits.inviteEmailLength, `must be at most ${limits.inviteEmailLength} characters`),
  role: z.enum(['admin', 'member']).default('member'),
}).meta({ id: 'InviteCreate' })
export type InviteCreate = z.infer<typeof inviteCreateSchema>

export const inviteCreatedSchema = strict({ invite: inviteSchema }).meta({ id: 'InviteCreated' })
export type InviteCreated = z.infer<typeof inviteCreatedSchema>

/** GET /v1/invites/{token}: what a visitor with the link may see. */
export const invitationSchema = strict({
  teamId: z.string(),
  teamName: z.string(),
  email: z.string(),
  role: z.enum(roles),
  inviterName: z.string().nullable(),
  expiresAt: timestamp,
  expired: z.boolean(),
}).meta({ id: 'Invitation' })
export type Invitation = z.infer<typeof invitationSchema>
