// Handles events of the payment provider: an event schedules a poll of its payment (reliability B12). Anyone can send
// such a call, so nothing is read before the signature is verified.

import type { App } from '../../app.ts'
import { notFound, validation } from '../../contract/errors.ts'
import type { PaymentEventAnswer } from '../../contract/payment.ts'
import { ForgedEvent } from '../../integrations/stripe.ts'
import { wakePayments } from '../../store/payments.ts'

/**
 * Throws `validation` for a call that is not signed by the provider, and `not_found` if the service takes no
 * payments.
 */
export async function handlePaymentEvent(
  app: App,
  { body, signature }: { body: Buffer; signature: string | null },
): Promise<PaymentEventAnswer> {
  const { payments: provider, clock } = app
  if (provider === null) throw notFound('webhook', 'stripe')
  try {
    const subject = await provider.readEvent(body, signature ?? '', clock.now())
    if (subject) await clock.withStableTime(() => wakePayments(app.db, { ...subject, now: clock.now() }))
  } catch (error) {
    if (!(error instanceof ForgedEvent)) throw error
    throw validation([{ path: 'stripe-signature', message: 'does not sign this body, or is too old' }])
  }
  return { received: true }
}
