// Keys and agents of a team (spec 4.5). Every operation on a key works on any agent, so both paths share their
// routes.

import {
  agentChangedSchema,
  agentChangeSchema,
  agentDryRunAskedSchema,
  agentDryRunSchema,
  agentListSchema,
  agentRevokedSchema,
  keyCreatedSchema,
  keyCreateSchema,
  keyListSchema,
} from '../../contract/agent.ts'
import { changeAgent } from '../../domain/agents/change.ts'
import { createKeyOfTeam } from '../../domain/agents/create-key.ts'
import { dryRunAgentChange } from '../../domain/agents/dry-run.ts'
import type { AgentNoun } from '../../domain/agents/find.ts'
import { listAgentsOfTeam, listKeys } from '../../domain/agents/list.ts'
import { revokeAgent } from '../../domain/agents/revoke.ts'
import { enforceNow } from '../../domain/units/admission/stop-beyond-limits.ts'
import { jsonBody, noBody } from '../http/body.ts'
import { defineRoute, idParams, noParams, noQuery, type Route } from '../route.ts'

const aboutAll = {
  params: noParams,
  query: noQuery,
  body: noBody,
  errors: [],
  target: () => null,
  record: () => null,
} as const

const listAll = defineRoute({
  ...aboutAll,
  method: 'GET',
  path: '/v1/agents',
  noun: 'agent',
  summary: "List the team's keys and connected agents, newest first",
  action: 'agent.list',
  kind: 'read',
  response: agentListSchema,
  handle: (app, _input, { caller }) => listAgentsOfTeam(app, caller),
})

const listOfKeys = defineRoute({
  ...aboutAll,
  method: 'GET',
  path: '/v1/keys',
  noun: 'key',
  summary: "List the team's keys, newest first",
  action: 'key.list',
  kind: 'read',
  response: keyListSchema,
  handle: (app, _input, { caller }) => listKeys(app, caller),
})

const create = defineRoute({
  ...aboutAll,
  method: 'POST',
  path: '/v1/keys',
  noun: 'key',
  summary: 'Create a key',
  description:
    'Only this answer contains the secret: store it. Needs a session, because a key cannot create another key.',
  action: 'key.create',
  kind: 'change',
  body: jsonBody(keyCreateSchema),
  status: 201,
  response: keyCreatedSchema,
  errors: [402, 409, 413, 415],
  allow: 'key.create',
  record: ({ body }) => body,
  outcome: ({ key }) => ({ target: key.id }),
  handle: (app, { body }, { caller, once }) => createKeyOfTeam(app, caller, body, once),
  idempotent: 'personal',
})

const aboutOne = (noun: AgentNoun) =>
  ({
    path: `/v1/${noun}s/{id}`,
    noun,
    rate: 'requests',
    params: idParams,
    query: noQuery,
    status: 200,
    events: {},
    target: ({ params }: { params: { id: string } }) => params.id,
  }) as const

const change = (noun: AgentNoun) =>
  defineRoute({
    ...aboutOne(noun),
    method: 'PATCH',
    summary: noun === 'key' ? 'Change the name or policy of a key' : 'Change the name or policy of an agent',
    description: 'Takes effect with the next call of the credential. Needs a session.',
    action: `${noun}.change`,
    kind: 'change',
    body: jsonBody(agentChangeSchema),
    response: agentChangedSchema,
    errors: [404, 409, 413, 415],
    record: ({ body }) => body,
    outcome: ({ narrowed }) =>
      narrowed.length === 0 ? {} : { added: { narrowed: narrowed.map(({ id: unit }) => unit) } },
    handle: async (app, { params, body }, { caller }) => {
      const changed = await changeAgent(app, caller, { noun, id: params.id, change: body })
      if (body.policy !== undefined) await enforceNow(app)
      return changed
    },
  })

const dryRun = defineRoute({
  ...aboutOne('agent'),
  method: 'POST',
  path: '/v1/agents/{id}/dry-run',
  summary: 'Say what a change of a policy would stop or narrow',
  description:
    'Changes nothing. Returns the running units that the same PATCH would stop, and those whose egress it would narrow. Needs a session.',
  action: 'agent.dryRun',
  kind: 'change',
  body: jsonBody(agentDryRunAskedSchema),
  response: agentDryRunSchema,
  errors: [404, 409, 413, 415],
  record: ({ body }) => body,
  handle: (app, { params, body }, { caller }) => dryRunAgentChange(app, caller, { id: params.id, ...body }),
})

const revoke = (noun: AgentNoun) =>
  defineRoute({
    ...aboutOne(noun),
    method: 'DELETE',
    summary: noun === 'key' ? 'Revoke a key' : 'Revoke an agent',
    description:
      'Its next call is refused with 401 and its open streams end; its units keep running. Needs a session.',
    action: `${noun}.revoke`,
    kind: 'change',
    body: noBody,
    response: agentRevokedSchema,
    errors: [404],
    record: () => null,
    handle: (app, { params }, { caller }) => revokeAgent(app, caller, { noun, id: params.id }),
  })

export const revokeAgentRoute = revoke('agent')

export const agentRoutes: readonly Route[] = [
  listAll,
  listOfKeys,
  create,
  change('key'),
  revoke('key'),
  change('agent'),
  dryRun,
  revokeAgentRoute,
]
