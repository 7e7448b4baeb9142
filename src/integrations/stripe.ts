// Stripe, as far as buying credits asks of it: a checkout that somebody pays at, how it stands, and what was paid back.
// The library is loaded only where the service takes payments: it takes 37 MB. Everything is bounded in time and size, no
// redirect is followed, and no error of ours repeats what Stripe says, which may hold a part of the key.

import { isIPv6 } from 'node:net'
import type { Stripe } from 'stripe'
import { z } from 'zod'
import { SECOND } from '../lib/clock.ts'

/** Made into the same checkout each time, whoever asks and how often. */
export type Order = { id: string; teamId: string; cents: number; returnTo: string }

export type Checkout = {
  id: string
  /** Where a browser goes to pay; null once it is over. */
  url: string | null
  /** `open` for as long as money may still come. */
  state: 'open' | 'paid' | 'expired' | 'failed'
  orderId: string | null
  cents: number | null
  currency: string | null
  /** What refunds and disputes name. */
  intentId: string | null
}

/** Money that went back, or came again; each has an id of its own for ever. */
export type PaidBack = { id: string; kind: 'refunded' | 'disputed'; cents: number; currency: string }

/** What an event is about. What it says of it is not used: whoever is told looks for himself. */
export type EventSubject = { checkoutId: string | null; orderId: string | null; intentId: string | null }

export type PaymentProvider = {
  /** Throws OrderRefused for what will never be made; anything else may go well the next time. */
  makeCheckout(order: Order): Promise<Checkout>
  findCheckout(id: string): Promise<Checkout>
  listPaidBack(intentId: string): Promise<PaidBack[]>
  /** Null for an event that tells of no payment. Throws ForgedEvent. */
  readEvent(body: Buffer, signature: string, now: Date): Promise<EventSubject | null>
}

export class OrderRefused extends Error {}
export class ForgedEvent extends Error {}

const REQUEST_MS = 10 * SECOND
const MAX_ANSWER_BYTES = 1024 * 1024
/** Whoever calls has retries of his own, with longer pauses. */
const RETRIES = 1
/** How old a signature may be. */
const TOLERANCE_S = 300
/** Of one payment; Stripe answers no more at once. */
const MAX_PAID_BACK = 100

export async function openStripe(settings: {
  secretKey: string
  webhookSecret: string
  url: string
}): Promise<PaymentProvider> {
  const { Stripe } = await import('stripe')
  const { protocol, hostname, port } = new URL(settings.url)
  const client = new Stripe(settings.secretKey, {
    protocol: protocol === 'http:' ? 'http' : 'https',
    host: isIPv6(hostname) ? `[${hostname}]` : hostname,
    port: port === '' ? (protocol === 'http:' ? 80 : 443) : Number(port),
    httpClient: Stripe.createFetchHttpClient(boundedFetch),
    timeout: REQUEST_MS,
    maxNetworkRetries: RETRIES,
    telemetry: false,
  })
  return {
    makeCheckout: async (order) =>
      toCheckout(
        await neutral(() =>
          client.checkout.sessions.create(checkoutOf(order), {
            idempotencyKey: order.id,
          }),
        ),
      ),
    findCheckout: async (id) =>
      toCheckout(await neutral(() => client.checkout.sessions.retrieve(id, { expand: ['payment_intent'] }))),
    listPaidBack: async (intentId) => {
      const which = { payment_intent: intentId, limit: MAX_PAID_BACK }
      const refunds = await neutral(() => client.refunds.list(which))
      const disputes = await neutral(() => client.disputes.list(which))
      return [...refunds.data.flatMap(ofRefund), ...disputes.data.flatMap(ofDispute)]
    },
    readEvent: async (body, signature, now) => {
      const { webhooks } = client
      const read = webhooks.constructEventAsync(
        body,
        signature,
        settings.webhookSecret,
        TOLERANCE_S,
        undefined,
        now.getTime(),
      )
      const event: unknown = await read.catch((cause: unknown) => {
        throw new ForgedEvent('the event is not signed as it should be', { cause })
      })
      return subjectOf(event)
    },
  }
}

/** Of nothing but the order: the key that makes it once is refused with anything else. */
function checkoutOf({ id, teamId, cents, returnTo }: Order): Stripe.Checkout.SessionCreateParams {
  const metadata = { payment: id, team: teamId }
  return {
    mode: 'payment',
    client_reference_id: id,
    metadata,
    payment_intent_data: { metadata },
    line_items: [
      {
        quantity: 1,
        price_data: { currency: 'eur', unit_amount: cents, product_data: { name: 'Credits' } },
      },
    ],
    // Else people could pay in a currency of their own, and the sum would be another.
    adaptive_pricing: { enabled: false },
    success_url: returnTo,
    cancel_url: returnTo,
  }
}

function toCheckout(session: Stripe.Checkout.Session): Checkout {
  const { id, url, client_reference_id, amount_total, currency, payment_intent: intent } = session
  return {
    id,
    url,
    state: stateOf(session),
    orderId: client_reference_id,
    cents: amount_total,
    currency,
    intentId: typeof intent === 'string' ? intent : (intent?.id ?? null),
  }
}

function stateOf({
  status,
  payment_status: paid,
  payment_intent: intent,
}: Stripe.Checkout.Session): Checkout['state'] {
  if (paid === 'paid') return 'paid'
  if (status === 'expired') return 'expired'
  if (status !== 'complete') return 'open'
  // The person is through, and the bank is not: a debit takes days, and may come to nothing.
  const ofIntent = typeof intent === 'string' ? null : intent?.status
  const isOver = ofIntent === 'requires_payment_method' || ofIntent === 'canceled'
  return isOver || paid === 'no_payment_required' ? 'failed' : 'open'
}

/** One that fails later has been made undone; together that is nothing, whichever of it was seen first. */
function ofRefund({ id, amount, currency, status }: Stripe.Refund): PaidBack[] {
  const gone: PaidBack = { id, kind: 'refunded', cents: -amount, currency }
  if (status === 'succeeded') return [gone]
  if (status !== 'failed' && status !== 'canceled') return []
  return [gone, { ...gone, id: `${id} ${status}`, cents: amount }]
}

function ofDispute({ id, amount, currency, status }: Stripe.Dispute): PaidBack[] {
  // Only asked about: no money has moved.
  if (status.startsWith('warning_') || status === 'prevented') return []
  const gone: PaidBack = { id, kind: 'disputed', cents: -amount, currency }
  return status === 'won' ? [gone, { ...gone, id: `${id} won`, cents: amount }] : [gone]
}

const named = z.union([z.string(), z.object({ id: z.string() }).transform(({ id }) => id)])
const eventSchema = z.object({
  type: z.string(),
  data: z.object({
    object: z.object({
      id: z.string(),
      client_reference_id: z.string().nullish(),
      payment_intent: named.nullish(),
    }),
  }),
})

function subjectOf(event: unknown): EventSubject | null {
  const known = eventSchema.safeParse(event)
  if (!known.success) return null
  const { type, data } = known.data
  const { id, client_reference_id: orderId, payment_intent: intentId } = data.object
  const isCheckout = type.startsWith('checkout.session.')
  if (!isCheckout && !/^(charge|refund)\./.test(type)) return null
  return { checkoutId: isCheckout ? id : null, orderId: orderId ?? null, intentId: intentId ?? null }
}

/** With its body read, so that the time limit of the request holds for it. */
async function boundedFetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
  const response = await fetch(input, { ...init, redirect: 'error' })
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    if (bytes > MAX_ANSWER_BYTES) throw new Error('the answer is too long')
    chunks.push(chunk)
  }
  const { status, headers } = response
  return new Response(Buffer.concat(chunks), { status, headers })
}

/** Throws what can be logged. */
async function neutral<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    const { type, statusCode, code } = error as { type?: string; statusCode?: number; code?: string }
    const said = [type, statusCode, code].filter((part) => part !== undefined).join(' ')
    const sentence = `Stripe did not do it (${said || 'no answer'})`
    // Not 409: the same order is being made just now.
    const isFinal =
      statusCode === 400 && (type === 'StripeInvalidRequestError' || type === 'StripeIdempotencyError')
    throw isFinal ? new OrderRefused(sentence) : new Error(sentence)
  }
}
