// A person agrees that a program acts as an agent of a team. Done by the consent page alone, which alone has a ticket; so
// it is no path of the API, and yet an operation with its checks and its audit row.

import { connectedSchema, connectSchema } from '../../contract/oauth.ts'
import { connectAgent } from '../../domain/oauth/connect.ts'
import { jsonBody } from '../http/body.ts'
import { defineRoute, noParams, noQuery } from '../route.ts'

export const connectRoute = defineRoute({
  method: 'POST',
  path: '/oauth/consent',
  noun: 'agent',
  summary: 'Connect an agent',
  action: 'agent.connect',
  kind: 'change',
  rate: 'creations',
  params: noParams,
  query: noQuery,
  body: jsonBody(connectSchema),
  status: 201,
  response: connectedSchema,
  events: {},
  errors: [402, 409],
  allow: 'agent.connect',
  team: ({ body }) => body.team,
  target: () => null,
  record: ({ body: { client, name, policy } }) => ({ client, name, policy }),
  outcome: ({ agentId }) => ({ target: agentId }),
  handle: (app, { body }, { caller }) => connectAgent(app, caller, body),
})
