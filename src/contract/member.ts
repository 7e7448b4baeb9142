// Members of a team (spec 2.10, 4.1).

import { z } from 'zod'
import { strict, timestamp } from './fields.ts'
import { inviteSchema } from './invite.ts'
import { roles } from './team.ts'

const memberSchema = strict({
  userId: z.string(),
  name: z.string(),
  email: z.string(),
  role: z.enum(roles),
  joinedAt: timestamp,
}).meta({ id: 'Member' })

/** GET /v1/teams/{id}/members. */
export const memberListSchema = strict({
  members: z.array(memberSchema).describe('In the order in which they joined.'),
  invites: z.array(inviteSchema).describe('Open and expired invitations, newest first.'),
}).meta({ id: 'MemberList' })
export type MemberList = z.infer<typeof memberListSchema>

/** PATCH /v1/teams/{id}/members/{userId}. */
export const roleChangeSchema = strict({ role: z.enum(roles) }).meta({ id: 'RoleChange' })
export type RoleChange = z.infer<typeof roleChangeSchema>

export const doneSchema = strict({ ok: z.literal(true) }).meta({ id: 'Done' })
export type Done = z.infer<typeof doneSchema>

/** DELETE /v1/teams/{id}/members/{userId}. */
export const memberRemovedSchema = strict({
  ok: z.literal(true),
  keysToReview: z
    .array(strict({ id: z.string(), name: z.string(), prefix: z.string() }))
    .describe(
      'Valid keys that the removed member created. They stay with the team: revoke those that this person must not use.',
    ),
}).meta({ id: 'MemberRemoved' })
export type MemberRemoved = z.infer<typeof memberRemovedSchema>
