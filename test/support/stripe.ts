// As much of Stripe as buying credits takes: checkouts, each made once for its idempotency key, and what becomes of them.

import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { Stripe } from 'stripe'
import type { StripeSettings } from '../../src/lib/service-settings.ts'

type Session = {
  id: string
  object: 'checkout.session'
  status: 'open' | 'complete' | 'expired'
  payment_status: 'unpaid' | 'paid'
  client_reference_id: string
  amount_total: number
  currency: string
  url: string | null
  payment_intent: { id: string; status: string } | null
}
type PaidBack = { id: string; payment_intent: string; amount: number; currency: string; status: string }

/** `drop`: it does what it is asked, and the answer is lost. */
type Mood = 'well' | 'away' | 'busy' | 'drop' | 'refuse' | 'redirect'

export type FakeStripe = {
  settings: StripeSettings
  /** In the order in which they were made. */
  sessions: Session[]
  refunds: PaidBack[]
  disputes: PaidBack[]
  /** How it answers from now on. */
  treat: (mood: Mood) => void
  /** Somebody goes through with it; the bank of a debit says later whether there is money. */
  pay: (session: Session, how?: 'at once' | 'by debit') => void
  /** What the bank says of a debit. */
  decide: (session: Session, how: 'succeeds' | 'fails') => void
  refund: (session: Session, cents: number, status?: string) => PaidBack
  dispute: (session: Session, cents: number) => PaidBack
  close: () => Promise<void>
}

const SECRET_KEY = 'sk_test_berth'
const WEBHOOK_SECRET = 'whsec_berth'

export async function startStripe(): Promise<FakeStripe> {
  const sessions: Session[] = []
  const refunds: PaidBack[] = []
  const disputes: PaidBack[] = []
  const made = new Map<string, { request: string; session: Session }>()
  let mood: Mood = 'well'
  let count = 0
  const server = createServer((request, response) => void serve(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request)
    if (mood === 'away') return refuse(response, 503, 'api_error')
    if (mood === 'busy') return refuse(response, 409, 'idempotency_error')
    if (mood === 'redirect') return void response.writeHead(307, { location: `${url}/elsewhere` }).end()
    const isOurs = request.headers.authorization === `Bearer ${SECRET_KEY}`
    if (!isOurs) return refuse(response, 401, 'invalid_request_error')
    if (mood === 'refuse') return refuse(response, 400, 'invalid_request_error')
    const { pathname, searchParams } = new URL(request.url ?? '', url)
    const answer = answerOf(request, pathname, searchParams, body)
    if (mood === 'drop') return void request.socket.destroy()
    if (answer === null) return refuse(response, 400, 'idempotency_error')
    send(response, 200, answer)
  }

  function answerOf(
    request: IncomingMessage,
    path: string,
    query: URLSearchParams,
    body: string,
  ): object | null {
    if (request.method === 'POST') return make(String(request.headers['idempotency-key']), body)
    const back = path === '/v1/refunds' ? refunds : disputes
    if (path === '/v1/refunds' || path === '/v1/disputes') {
      const data = back.filter((each) => each.payment_intent === query.get('payment_intent'))
      return { object: 'list', data, has_more: false, url: path }
    }
    return sessions.find(({ id }) => path === `/v1/checkout/sessions/${id}`) ?? null
  }

  /** As Stripe has it: a key with the same request is the same answer, and with another one an error. */
  function make(key: string, body: string): object | null {
    const request = createHash('sha256').update(body).digest('hex')
    const known = made.get(key)
    if (known) return known.request === request ? known.session : null
    const form = new URLSearchParams(body)
    const id = `cs_test_${count++}`
    const session: Session = {
      id,
      object: 'checkout.session',
      status: 'open',
      payment_status: 'unpaid',
      client_reference_id: form.get('client_reference_id') ?? '',
      amount_total: Number(form.get('line_items[0][price_data][unit_amount]')),
      currency: form.get('line_items[0][price_data][currency]') ?? '',
      url: `https://checkout.stripe.test/${id}`,
      payment_intent: null,
    }
    made.set(key, { request, session })
    sessions.push(session)
    return session
  }

  const back = (session: Session, amount: number, status: string): PaidBack => ({
    id: `back_${count++}`,
    payment_intent: session.payment_intent?.id ?? '',
    amount,
    currency: 'eur',
    status,
  })
  return {
    settings: { secretKey: SECRET_KEY, webhookSecret: WEBHOOK_SECRET, url },
    sessions,
    refunds,
    disputes,
    treat: (how) => void (mood = how),
    pay: (session, how = 'at once') => {
      const isThere = how === 'at once'
      Object.assign(session, {
        status: 'complete',
        payment_status: isThere ? 'paid' : 'unpaid',
        url: null,
        payment_intent: { id: `pi_${session.id}`, status: isThere ? 'succeeded' : 'processing' },
      })
    },
    decide: (session, how) => {
      const succeeds = how === 'succeeds'
      session.payment_status = succeeds ? 'paid' : 'unpaid'
      if (session.payment_intent)
        session.payment_intent.status = succeeds ? 'succeeded' : 'requires_payment_method'
    },
    refund: (session, cents, status = 'succeeded') => {
      const refund = back(session, cents, status)
      refunds.push(refund)
      return refund
    },
    dispute: (session, cents) => {
      const dispute = back(session, cents, 'needs_response')
      disputes.push(dispute)
      return dispute
    },
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** An event as Stripe sends it: the very body, and what it is signed with. */
export function signedEvent(
  type: string,
  object: object,
  { at, secret = WEBHOOK_SECRET }: { at: Date; secret?: string },
): { body: string; signature: string } {
  const body = JSON.stringify({ id: 'evt_1', object: 'event', type, data: { object } })
  const timestamp = Math.floor(at.getTime() / 1000)
  const { webhooks } = new Stripe(SECRET_KEY)
  return { body, signature: webhooks.generateTestHeaderString({ payload: body, secret, timestamp }) }
}

function refuse(response: ServerResponse, status: number, type: string): void {
  send(response, status, { error: { type, message: `no, ${SECRET_KEY}` } })
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
