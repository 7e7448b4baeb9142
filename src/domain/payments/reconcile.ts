// We poll the provider for the truth. Webhooks only schedule a poll (webhook.ts), so lost, duplicate or reordered
// events are harmless. Each credit row has a unique source, a payment, refund or dispute, so it is written once.

import type { App } from '../../app.ts'
import { MINUTE } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { toNanoCents } from '../../lib/money.ts'
import type { Checkout, PaymentProvider } from '../../integrations/stripe.ts'
import { insertCredit } from '../../store/credits.ts'
import { changePayment, type PaymentRecord, takeDuePayments } from '../../store/payments.ts'
import { nextPollAt } from './poll-schedule.ts'
import { inTransaction } from '../transactions/transactions.ts'
import { openPayment } from './open.ts'

/** Longer than a poll takes; after this another process may try. */
export const TAKEN_FOR_MS = 2 * MINUTE
const AT_ONCE = 20

/** One run of the background job. */
export async function reconcilePayments(app: App): Promise<void> {
  const { payments: provider } = app
  if (provider === null) return
  const due = await app.clock.withStableTime(() => {
    const now = app.clock.now()
    const until = new Date(now.getTime() + TAKEN_FOR_MS)
    return takeDuePayments(app.db, { now, until, limit: AT_ONCE })
  })
  await Promise.all(due.map((payment) => settle(app, provider, payment)))
}

async function settle(app: App, provider: PaymentProvider, payment: PaymentRecord): Promise<void> {
  try {
    await look(app, provider, payment)
  } catch (error) {
    app.log.warn({ payment: payment.id, state: payment.state, err: error }, 'payment could not be polled')
    await lookLater(app, payment)
  }
}

async function look(app: App, provider: PaymentProvider, payment: PaymentRecord): Promise<void> {
  const { state, checkout_id: checkoutId, intent_id: intentId } = payment
  if (state === 'paid') return await settlePaidBack(app, provider, payment, intentId)
  if (checkoutId !== null) {
    return await settleCheckout(app, payment, await provider.findCheckout(checkoutId))
  }
  if (state === 'created' && nextPollAt(payment, app.clock.now()) !== null) {
    return void (await openPayment(app, provider, payment))
  }
  await lookLater(app, payment)
}

async function settleCheckout(app: App, payment: PaymentRecord, checkout: Checkout): Promise<void> {
  const { id, amount_cents: cents } = payment
  if (checkout.state === 'open') {
    // Also for a payment whose update was lost.
    const state = payment.closed_at === null ? 'open' : payment.state
    return await lookLater(app, { ...payment, state }, { state, checkout_url: checkout.url })
  }
  if (checkout.state !== 'paid') return await close(app, payment, checkout.state)
  const isOurs = checkout.orderId === id && checkout.cents === cents && checkout.currency === 'eur'
  if (isOurs) return await credit(app, payment, checkout)
  const { cents: paid, currency } = checkout
  app.log.error(
    { alarm: 'payment', payment: id, cents, paid, currency },
    'paid amount differs from the payment',
  )
  await close(app, payment, 'failed')
}

/** In one transaction, so that a team whose payment is `paid` has the credits. */
async function credit(app: App, payment: PaymentRecord, checkout: Checkout): Promise<void> {
  await app.failpoints.effect('payment.credit', () =>
    inTransaction(app, async (db) => {
      const at = app.clock.now()
      const changed = await changePayment(db, payment, {
        state: 'paid',
        intent_id: checkout.intentId,
        checkout_url: null,
        looks: 0,
        due_at: nextPollAt({ ...payment, state: 'paid', looks: 0 }, at),
        closed_at: at,
      })
      if (changed === null) return
      await insertCredit(db, {
        id: newId('credit'),
        teamId: payment.team_id,
        kind: 'topped-up',
        nanoCents: toNanoCents(payment.amount_cents),
        source: `payment ${payment.id}`,
        note: null,
        createdAt: at,
      })
    }),
  )
}

async function settlePaidBack(
  app: App,
  provider: PaymentProvider,
  payment: PaymentRecord,
  intentId: string | null,
): Promise<void> {
  for (const { id, kind, cents, currency } of intentId ? await provider.listPaidBack(intentId) : []) {
    if (currency !== 'eur') throw new Error(`what was paid back as ${id} is in ${currency}`)
    const written = await app.failpoints.effect('payment.correct', () =>
      insertCredit(app.db, {
        id: newId('credit'),
        teamId: payment.team_id,
        kind,
        nanoCents: toNanoCents(cents),
        source: `payment ${payment.id} ${id}`,
        note: null,
        createdAt: app.clock.now(),
      }),
    )
    if (written) app.log.info({ payment: payment.id, kind, cents }, 'credits taken back')
  }
  await lookLater(app, payment)
}

async function close(app: App, payment: PaymentRecord, state: 'expired' | 'failed'): Promise<void> {
  const closed_at = payment.closed_at ?? app.clock.now()
  await changePayment(app.db, payment, { state, checkout_url: null, due_at: null, closed_at })
}

async function lookLater(
  app: App,
  payment: PaymentRecord,
  change: Pick<Partial<PaymentRecord>, 'state' | 'checkout_url'> = {},
): Promise<void> {
  const due_at = nextPollAt(payment, app.clock.now())
  if (due_at !== null || payment.closed_at !== null) {
    return void (await changePayment(app.db, payment, { ...change, due_at }))
  }
  app.log.error(
    { payment: payment.id, state: payment.state },
    'payment did not complete and is no longer polled',
  )
  await close(app, payment, payment.state === 'created' ? 'expired' : 'failed')
}
