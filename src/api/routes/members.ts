// The people of a team (spec 4.1). Only people may call these: no key or token reads or changes members (spec 5.3).

import { z } from 'zod'
import { doneSchema, memberListSchema, memberRemovedSchema, roleChangeSchema } from '../../contract/member.ts'
import { changeRoleOfMember } from '../../domain/members/change-role.ts'
import { listMembersOfTeam } from '../../domain/members/list.ts'
import { removeMember } from '../../domain/members/remove.ts'
import { jsonBody, noBody } from '../http/body.ts'
import { defineRoute, idParams, noQuery, pathId, type Route } from '../route.ts'

const memberParams = z.strictObject({ id: pathId, userId: pathId })

const ofTeam = {
  noun: 'member',
  query: noQuery,
  team: ({ params }: { params: { id: string } }) => params.id,
} as const

const list = defineRoute({
  ...ofTeam,
  method: 'GET',
  path: '/v1/teams/{id}/members',
  summary: 'List the members of a team and who is invited',
  action: 'member.list',
  kind: 'read',
  params: idParams,
  body: noBody,
  response: memberListSchema,
  errors: [404],
  allow: 'member.list',
  target: ({ params }) => params.id,
  record: () => null,
  handle: (app, _input, { caller }) => listMembersOfTeam(app, caller),
})

const changeRole = defineRoute({
  ...ofTeam,
  method: 'PATCH',
  path: '/v1/teams/{id}/members/{userId}',
  summary: 'Change the role of a member',
  description: 'For owners. The last owner of a team cannot change role.',
  action: 'member.changeRole',
  kind: 'change',
  params: memberParams,
  body: jsonBody(roleChangeSchema),
  response: doneSchema,
  errors: [404, 409, 413, 415],
  allow: 'member.changeRole',
  target: ({ params }) => params.userId,
  record: ({ body }) => body,
  handle: (app, { params: { userId }, body: { role } }, { caller }) =>
    changeRoleOfMember(app, caller, { userId, role }),
})

const remove = defineRoute({
  ...ofTeam,
  method: 'DELETE',
  path: '/v1/teams/{id}/members/{userId}',
  summary: 'Remove a member, or leave the team',
  description:
    'Owners may remove anyone, admins may remove members, and everyone except the last owner may leave. Keys that the member created stay valid; the answer lists them for review.',
  action: 'member.remove',
  kind: 'change',
  params: memberParams,
  body: noBody,
  response: memberRemovedSchema,
  errors: [404, 409],
  // Removing another person needs more, depending on that person's role.
  allow: 'member.leave',
  target: ({ params }) => params.userId,
  record: () => null,
  handle: (app, { params }, { caller }) => removeMember(app, caller, params.userId),
})

export const memberRoutes: readonly Route[] = [list, changeRole, remove]
