// Makes the checkout of a stored payment. The provider makes one checkout per payment id, however often it is asked
// (reliability B12), so a call that died can simply be repeated.

import type { App } from '../../app.ts'
import { type Checkout, OrderRefused, type PaymentProvider } from '../../integrations/stripe.ts'
import { changePayment, findPayment, type PaymentRecord } from '../../store/payments.ts'
import { nextPollAt } from './poll-schedule.ts'

/**
 * Returns the payment: `open`, `failed` if the provider refused it, or whatever state another process has set in the
 * meantime. Throws if the provider does not answer.
 */
export async function openPayment(
  app: App,
  provider: PaymentProvider,
  payment: PaymentRecord,
): Promise<PaymentRecord> {
  const checkout = await app.failpoints.effect('payment.checkout', () => makeCheckout(app, provider, payment))
  const now = app.clock.now()
  const change =
    checkout === null
      ? { state: 'failed' as const, due_at: null, closed_at: now }
      : {
          state: 'open' as const,
          checkout_id: checkout.id,
          checkout_url: checkout.url,
          looks: 0,
          due_at: nextPollAt({ ...payment, state: 'open', looks: 0 }, now),
        }
  const changed = await app.failpoints.effect('payment.open', () => changePayment(app.db, payment, change))
  return changed ?? (await findPayment(app.db, payment.id)) ?? payment
}

async function makeCheckout(
  { config, log }: App,
  provider: PaymentProvider,
  { id, team_id: teamId, amount_cents: cents }: PaymentRecord,
): Promise<Checkout | null> {
  try {
    return await provider.makeCheckout({ id, teamId, cents, returnTo: `${config.publicUrl}/account` })
  } catch (error) {
    if (!(error instanceof OrderRefused)) throw error
    log.error({ payment: id, err: error }, 'payment refused by the provider')
    return null
  }
}
