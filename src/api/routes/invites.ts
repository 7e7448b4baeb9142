// Invitations to a team (spec 4.1): owners and admins send and revoke them, anyone with the link reads them, and the
// person they were sent to accepts. The token is a secret: no audit row and no answer contains it.

import { z } from 'zod'
import { invitationSchema, inviteCreatedSchema, inviteCreateSchema } from '../../contract/invite.ts'
import { doneSchema } from '../../contract/member.ts'
import { teamAnswerSchema } from '../../contract/team.ts'
import { acceptInvite } from '../../domain/invites/accept.ts'
import { inviteToTeam } from '../../domain/invites/create.ts'
import { lookUpInvite } from '../../domain/invites/look-up.ts'
import { revokeInvite } from '../../domain/invites/revoke.ts'
import { jsonBody, noBody } from '../http/body.ts'
import { defineOpenRoute, defineRoute, idParams, noQuery, pathId, type Route } from '../route.ts'

const tokenParams = z.strictObject({ token: z.string().regex(/^[A-Za-z0-9_-]{1,128}$/) })

const about = { noun: 'invitation', query: noQuery, events: {} } as const

const ofTeam = ({ params }: { params: { id: string } }) => params.id

const create = defineRoute({
  ...about,
  method: 'POST',
  path: '/v1/teams/{id}/invites',
  summary: 'Invite a person to a team by mail',
  description:
    'For owners and admins, on the Pro plan and above. The link is valid for seven days. A new invitation to the same address replaces the earlier one. Limits: 30 invitations per team and ten per address within ten minutes.',
  action: 'invite.create',
  kind: 'change',
  params: idParams,
  body: jsonBody(inviteCreateSchema),
  status: 201,
  response: inviteCreatedSchema,
  errors: [402, 404, 409, 413, 415],
  allow: 'invite.create',
  team: ofTeam,
  target: ofTeam,
  record: ({ body }) => body,
  outcome: ({ invite }) => ({ target: invite.id }),
  handle: (app, { body }, { caller, once }) => inviteToTeam(app, caller, body, once),
  idempotent: true,
})

const revoke = defineRoute({
  ...about,
  method: 'DELETE',
  path: '/v1/teams/{id}/invites/{inviteId}',
  summary: 'Revoke an invitation',
  description: 'For owners and admins. Its link stops working at once.',
  action: 'invite.revoke',
  kind: 'change',
  params: z.strictObject({ id: pathId, inviteId: pathId }),
  body: noBody,
  response: doneSchema,
  errors: [404],
  allow: 'invite.revoke',
  team: ofTeam,
  target: ({ params }) => params.inviteId,
  record: () => null,
  handle: (app, { params }, { caller }) => revokeInvite(app, caller, params.inviteId),
})

const lookUp = defineOpenRoute({
  ...about,
  method: 'GET',
  path: '/v1/invites/{token}',
  summary: 'Look at an invitation',
  description:
    'The token in the path is the only credential needed. An accepted, revoked or replaced invitation gets 404.',
  action: 'invite.read',
  kind: 'read',
  params: tokenParams,
  body: noBody,
  response: invitationSchema,
  errors: [404],
  target: () => null,
  record: () => null,
  handle: (app, { params }) => lookUpInvite(app, params.token),
})

export const acceptRoute = defineRoute({
  ...about,
  method: 'POST',
  path: '/v1/invites/{token}/accept',
  summary: 'Accept an invitation',
  description: 'Needs a session of the address that the invitation was sent to. It works once.',
  action: 'invite.accept',
  kind: 'change',
  params: tokenParams,
  body: noBody,
  response: teamAnswerSchema,
  errors: [402, 404, 409],
  allow: 'invite.accept',
  target: () => null,
  record: () => null,
  outcome: ({ team }) => ({ target: team.id }),
  handle: (app, { params }, { caller }) => acceptInvite(app, caller, params.token),
})

export const inviteRoutes: readonly Route[] = [create, revoke, lookUp, acceptRoute]
