// Buying credits: owners and admins on their pages, and the payment provider, whose webhook reports events.

import {
  paymentAnswerSchema,
  paymentCreateSchema,
  paymentEventAnswerSchema,
  paymentListSchema,
} from '../../contract/payment.ts'
import { createPayment, resumePayment } from '../../domain/payments/create.ts'
import { handlePaymentEvent } from '../../domain/payments/webhook.ts'
import { listPaymentsOfCaller } from '../../domain/payments/list.ts'
import { eventBody, jsonBody, noBody } from '../http/body.ts'
import { defineOpenRoute, defineRoute, idParams, noParams, noQuery, type Route } from '../route.ts'

const ofTeam = ({ params }: { params: { id: string } }) => params.id

const about = { noun: 'payment', query: noQuery, events: {} } as const

const create = defineRoute({
  ...about,
  method: 'POST',
  path: '/v1/teams/{id}/payments',
  summary: 'Buy credits for a team',
  description:
    'For owners and admins. Returns a URL at which a browser pays. The credits arrive seconds after the payment. 403 if the service takes no payments (`payments` of GET /v1/me).',
  action: 'payment.create',
  kind: 'change',
  params: idParams,
  body: jsonBody(paymentCreateSchema),
  status: 201,
  response: paymentAnswerSchema,
  errors: [404, 413, 415, 502],
  allow: 'payment.create',
  team: ofTeam,
  target: ofTeam,
  record: ({ body }) => body,
  outcome: ({ payment }) => ({ target: payment.id }),
  handle: (app, { body }, { caller, once }) => createPayment(app, caller, body, once),
  idempotent: { resume: (app, _input, _context, kept) => resumePayment(app, kept) },
})

const list = defineRoute({
  ...about,
  method: 'GET',
  path: '/v1/teams/{id}/payments',
  summary: 'List the payments of a team',
  description: 'For owners and admins.',
  action: 'payment.list',
  kind: 'read',
  params: idParams,
  body: noBody,
  response: paymentListSchema,
  errors: [404],
  allow: 'payment.list',
  team: ofTeam,
  target: ofTeam,
  record: () => null,
  handle: (app, _input, { caller }) => listPaymentsOfCaller(app, caller),
})

const hear = defineOpenRoute({
  ...about,
  method: 'POST',
  path: '/v1/webhooks/stripe',
  summary: 'Receive an event of the payment provider',
  description:
    'For Stripe only: the header `Stripe-Signature` must sign this body. Events that concern no payment are accepted and ignored.',
  action: 'payment.hear',
  kind: 'change',
  params: noParams,
  body: eventBody,
  response: paymentEventAnswerSchema,
  errors: [404, 413],
  target: () => null,
  record: () => null,
  handle: (app, { body }, { stripeSignature: signature }) => handlePaymentEvent(app, { body, signature }),
})

export const paymentRoutes: readonly Route[] = [create, list, hear]
