// A person approves that a program acts as an agent of a team. Only the consent page calls this, because only the
// page has a ticket. It is therefore not a path of the API, but it is an operation with its checks and its audit row.

import { connectedSchema, connectSchema } from '../../contract/oauth.ts'
import { connectAgent } from '../../domain/oauth/connect.ts'
import { enforceNow } from '../../domain/units/admission/stop-beyond-limits.ts'
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
  errors: [402, 409],
  allow: 'agent.connect',
  team: ({ body }) => body.team,
  target: () => null,
  record: ({ body: { client, name, policy } }) => ({ client, name, policy }),
  outcome: ({ agentId }) => ({ target: agentId }),
  handle: async (app, { body }, { caller }) => {
    const connected = await connectAgent(app, caller, body)
    // An agent that was connected before may have units beyond its new policy.
    await enforceNow(app)
    return connected
  },
})
