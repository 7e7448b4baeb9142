// Payments for credits. The spec has no route for them; see decisions/money.md.

import { z } from 'zod'
import { strict, timestamp } from './fields.ts'
import { limits } from './limits.ts'

export const paymentStates = ['created', 'open', 'paid', 'expired', 'failed'] as const
export type PaymentState = (typeof paymentStates)[number]

export const paymentSchema = strict({
  id: z.string(),
  state: z.enum(paymentStates).describe('`open`: not paid yet. `paid`: the credits were added.'),
  amountCents: z.int().describe('Euro cents.'),
  checkoutUrl: z
    .string()
    .nullable()
    .describe('The URL at which a browser pays; null once the payment is closed.'),
  createdBy: z.string().describe('The id of the person who requested it.'),
  createdAt: timestamp,
  closedAt: timestamp.nullable().describe('When it was paid, expired or failed.'),
}).meta({ id: 'Payment' })
export type Payment = z.infer<typeof paymentSchema>

const { min, max } = limits.paymentCents

/** POST /v1/teams/{id}/payments. */
export const paymentCreateSchema = strict({
  amountCents: z
    .int()
    .min(min)
    .max(max)
    .describe('The amount in euro cents; the team gets the same amount in credits.'),
}).meta({ id: 'PaymentCreate' })
export type PaymentCreate = z.infer<typeof paymentCreateSchema>

export const paymentAnswerSchema = strict({ payment: paymentSchema }).meta({ id: 'PaymentAnswer' })
export type PaymentAnswer = z.infer<typeof paymentAnswerSchema>

/** GET /v1/teams/{id}/payments. */
export const paymentListSchema = strict({
  payments: z.array(paymentSchema).describe('Newest first, at most 100.'),
}).meta({ id: 'PaymentList' })
export type PaymentList = z.infer<typeof paymentListSchema>

/** POST /v1/webhooks/stripe. */
export const paymentEventAnswerSchema = strict({ received: z.literal(true) }).meta({
  id: 'PaymentEventAnswer',
})
export type PaymentEventAnswer = z.infer<typeof paymentEventAnswerSchema>
