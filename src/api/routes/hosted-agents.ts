// Environments of vendors whose hosted agents work in units here (docs/guides/hosted-agents.md). No answer has a credential.

import {
  hostedAnswerSchema,
  hostedChangedSchema,
  hostedChangeSchema,
  hostedCreateSchema,
  hostedDeletedSchema,
  hostedListSchema,
} from '../../contract/hosted-agents.ts'
import { changeHosted } from '../../domain/hosted-agents/change.ts'
import { createHosted } from '../../domain/hosted-agents/create.ts'
import { deleteHosted } from '../../domain/hosted-agents/delete.ts'
import { getHostedWithSessions, listHostedOfTeam } from '../../domain/hosted-agents/list.ts'
import { jsonBody, noBody } from '../http/body.ts'
import { defineRoute, idParams, noParams, noQuery, type Route } from '../route.ts'

const about = { noun: 'hosted environment', rate: 'requests', query: noQuery, events: {} } as const

const list = defineRoute({
  ...about,
  method: 'GET',
  path: '/v1/hosted-agents',
  summary: 'List the environments whose hosted agents work here, oldest first',
  action: 'hosted.list',
  kind: 'read',
  params: noParams,
  body: noBody,
  status: 200,
  response: hostedListSchema,
  errors: [],
  target: () => null,
  record: () => null,
  handle: (app, _input, { caller }) => listHostedOfTeam(app, caller),
})

const create = defineRoute({
  ...about,
  method: 'POST',
  path: '/v1/hosted-agents',
  summary: "Let a vendor's hosted agents work in units",
  description:
    'Makes a key whose policy bounds the sessions, and shows it to nobody. From the answer on Berth asks the vendor for work. ' +
    'Needs a session, because a key cannot create another key.',
  action: 'hosted.create',
  kind: 'change',
  params: noParams,
  body: jsonBody(hostedCreateSchema),
  status: 201,
  response: hostedChangedSchema,
  errors: [402, 404, 409, 413, 415],
  allow: 'hosted.create',
  target: () => null,
  record: ({ body }) => ({ ...body, environmentKey: 'given' }),
  outcome: ({ environment }) => ({ target: environment.id }),
  handle: (app, { body }, { caller, once }) => createHosted(app, caller, body, once),
  idempotent: true,
})

const aboutOne = {
  ...about,
  path: '/v1/hosted-agents/{id}',
  params: idParams,
  status: 200,
  target: ({ params }: { params: { id: string } }) => params.id,
} as const

const get = defineRoute({
  ...aboutOne,
  method: 'GET',
  summary: 'Get an environment with its sessions',
  action: 'hosted.get',
  kind: 'read',
  body: noBody,
  response: hostedAnswerSchema,
  errors: [404],
  record: () => null,
  handle: (app, { params }, { caller }) => getHostedWithSessions(app, caller, params.id),
})

const change = defineRoute({
  ...aboutOne,
  method: 'PATCH',
  summary: 'Switch an environment on or off, or change how it works',
  description:
    'Also with another credential. Work that is under way goes on as it began; what is claimed later has the new settings. ' +
    'Switched off, its work goes back to the queue, and is begun again later in the same units. Needs a session.',
  action: 'hosted.change',
  kind: 'change',
  body: jsonBody(hostedChangeSchema),
  response: hostedChangedSchema,
  errors: [404, 413, 415],
  record: ({ body: { environmentKey, ...body } }) =>
    environmentKey === undefined ? body : { ...body, environmentKey: 'replaced' },
  handle: (app, { params, body }, { caller }) => changeHosted(app, caller, { ...body, id: params.id }),
})

const remove = defineRoute({
  ...aboutOne,
  method: 'DELETE',
  summary: 'Delete an environment, its key and the units of its sessions',
  description: 'Its work stays queued at the vendor. Needs a session.',
  action: 'hosted.delete',
  kind: 'change',
  body: noBody,
  response: hostedDeletedSchema,
  errors: [404],
  record: () => ({}),
  outcome: ({ destroyed }) => (destroyed.length === 0 ? {} : { added: { destroyed } }),
  handle: (app, { params }, { caller }) => deleteHosted(app, caller, params.id),
})

export const hostedAgentRoutes: readonly Route[] = [list, create, get, change, remove]
