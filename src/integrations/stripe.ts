// The Stripe calls that buying credits needs: a checkout, its state, and what was paid back. The library takes 37 MB,
// so it is loaded only if the service takes payments. Every call is limited in time and size, no redirect is
// followed, and no error contains Stripe's words, which may hold a part of the key.

import { isIPv6 } from 'node:net'
import type { Stripe } from 'stripe'
import { z } from 'zod'
import { SECOND } from '../lib/clock.ts'

/** The same order always makes the same checkout, however often it is sent. */
export type Order = { id: string; teamId: string; cents: number; returnTo: string }

export type Checkout = {
  id: string
  /** The URL at which a browser pays; null once the checkout is closed. */
  url: string | null
  /** `open` while money may still arrive. */
  state: 'open' | 'paid' | 'expired' | 'failed'
  orderId: string | null
  cents: number | null
  currency: string | null
  /** The id that refunds and disputes refer to. */
  intentId: string | null
}

/** Money that was returned, or taken back again; each has a permanent id. */
export type PaidBack = { id: string; kind: 'refunded' | 'disputed'; cents: number; currency: string }

/**
 * The objects that an event concerns. The rest of the event is not used: the receiver reads the objects from Stripe.
 */
export type EventSubject = { checkoutId: string | null; orderId: string | null; intentId: string | null }

export type PaymentProvider = {
  /** Throws OrderRefused if the checkout can never be made; after any other error a retry may succeed. */
  makeCheckout(order: Order): Promise<Checkout>
  findCheckout(id: string): Promise<Checkout>
  listPaidBack(intentId: string): Promise<PaidBack[]>
  /** Returns null for an event that concerns no payment. Throws ForgedEvent. */
  readEvent(body: Buffer, signature: string, now: Date): Promise<EventSubject | null>
}

export class OrderRefused extends Error {}
export class ForgedEvent extends Error {}

const REQUEST_MS = 10 * SECOND
const MAX_ANSWER_BYTES = 1024 * 1024
/** The caller retries too, with longer pauses. */
const RETRIES = 1
/** The maximum age of a signature. */
const TOLERANCE_S = 300
/** For one payment; Stripe returns no more at once. */
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

/** Made from the order alone, because Stripe refuses an idempotency key that is reused with other parameters. */
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
    // Otherwise people could pay in another currency, and the amount would differ.
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
  // The person has finished, but the bank has not: a debit takes days and may fail.
  const ofIntent = typeof intent === 'string' ? null : intent?.status
  const isOver = ofIntent === 'requires_payment_method' || ofIntent === 'canceled'
  return isOver || paid === 'no_payment_required' ? 'failed' : 'open'
}

/** A refund that fails later is reversed; both together are zero, in whichever order they are seen. */
function ofRefund({ id, amount, currency, status }: Stripe.Refund): PaidBack[] {
  const gone: PaidBack = { id, kind: 'refunded', cents: -amount, currency }
  if (status === 'succeeded') return [gone]
  if (status !== 'failed' && status !== 'canceled') return []
  return [gone, { ...gone, id: `${id} ${status}`, cents: amount }]
}

function ofDispute({ id, amount, currency, status }: Stripe.Dispute): PaidBack[] {
  // Only an inquiry: no money has moved.
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

/** Reads the body too, so that the time limit covers it. */
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

/** Throws an error that can be logged. */
async function neutral<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    const { type, statusCode, code } = error as { type?: string; statusCode?: number; code?: string }
    const said = [type, statusCode, code].filter((part) => part !== undefined).join(' ')
    const sentence = `Stripe refused the request (${said || 'no answer'})`
    // Not 409: the same order is being made at this moment.
    const isFinal =
      statusCode === 400 && (type === 'StripeInvalidRequestError' || type === 'StripeIdempotencyError')
    throw isFinal ? new OrderRefused(sentence) : new Error(sentence)
  }
}
