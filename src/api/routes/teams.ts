// Teams (spec 4.1). Only people may call these: no key or token creates, changes or deletes a team (spec 5.3).

import { doneSchema } from '../../contract/member.ts'
import {
  teamAnswerSchema,
  teamChangedSchema,
  teamChangeSchema,
  teamCreateSchema,
} from '../../contract/team.ts'
import { changeTeamOfCaller } from '../../domain/teams/change.ts'
import { createTeam } from '../../domain/teams/create.ts'
import { deleteTeamOfCaller } from '../../domain/teams/delete.ts'
import { jsonBody, noBody } from '../http/body.ts'
import { defineRoute, idParams, noParams, noQuery, type Route } from '../route.ts'

const create = defineRoute({
  method: 'POST',
  path: '/v1/teams',
  noun: 'team',
  summary: 'Create a team',
  description:
    'The caller becomes its owner. Needs a session, and the Pro plan or above in a team you own. Operators of the service need no plan.',
  action: 'team.create',
  kind: 'change',
  params: noParams,
  query: noQuery,
  body: jsonBody(teamCreateSchema),
  status: 201,
  response: teamAnswerSchema,
  errors: [402, 413, 415],
  allow: 'team.create',
  target: () => null,
  record: ({ body }) => body,
  outcome: ({ team }) => ({ target: team.id }),
  handle: (app, { body }, { caller, once }) => createTeam(app, caller, body, once),
  idempotent: 'personal',
})

const aboutTeam = {
  path: '/v1/teams/{id}',
  noun: 'team',
  kind: 'change',
  params: idParams,
  query: noQuery,
  team: ({ params }: { params: { id: string } }) => params.id,
  target: ({ params }: { params: { id: string } }) => params.id,
} as const

const change = defineRoute({
  ...aboutTeam,
  method: 'PATCH',
  summary: 'Change the name, region, currency or bound of egress of a team',
  description: 'For owners and admins. Omitted fields stay unchanged.',
  action: 'team.change',
  body: jsonBody(teamChangeSchema),
  response: teamChangedSchema,
  errors: [404, 413, 415],
  allow: 'team.change',
  record: ({ body }) => body,
  outcome: ({ narrowed }) =>
    narrowed.length === 0 ? {} : { added: { narrowed: narrowed.map(({ id }) => id) } },
  handle: (app, { body }, { caller }) => changeTeamOfCaller(app, caller, body),
})

const remove = defineRoute({
  ...aboutTeam,
  method: 'DELETE',
  summary: 'Delete a team',
  description: 'For owners. A personal team cannot be deleted, nor a team with units: destroy them first.',
  action: 'team.delete',
  body: noBody,
  response: doneSchema,
  errors: [404, 409],
  allow: 'team.delete',
  record: () => null,
  handle: (app, _input, { caller }) => deleteTeamOfCaller(app, caller),
})

export const teamRoutes: readonly Route[] = [create, change, remove]
