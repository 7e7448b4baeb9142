// Messages to support (spec 4.5).

import { supportMessageSchema, supportTicketSchema } from '../../contract/support.ts'
import { sendToSupport } from '../../domain/support/send.ts'
import { jsonBody } from '../http/body.ts'
import { defineRoute, noParams, noQuery, type Route } from '../route.ts'

const send = defineRoute({
  method: 'POST',
  path: '/v1/support',
  noun: 'support message',
  summary: 'Write to the operator of this service',
  description:
    'The signed-in person gets the reply by mail. For a key or a token it is its creator, else an owner of the team. ' +
    'Limit: five messages in ten minutes per credential.',
  action: 'support.send',
  kind: 'change',
  params: noParams,
  query: noQuery,
  body: jsonBody(supportMessageSchema),
  status: 201,
  response: supportTicketSchema,
  errors: [409, 413, 415, 502],
  target: () => null,
  record: ({ body: { topic, message } }) => ({ topic, messageBytes: Buffer.byteLength(message) }),
  outcome: ({ ticket }) => ({ target: ticket }),
  handle: (app, { body }, { caller, once }) => sendToSupport(app, caller, body, once),
  idempotent: true,
})

export const supportRoutes: readonly Route[] = [send]
