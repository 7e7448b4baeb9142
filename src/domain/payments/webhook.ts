// What the provider says of its own accord (reliability B12): that a payment is worth a look. Anybody can send such a call,
// so nothing of it is read before its signature is known to be the provider's.

import type { App } from '../../app.ts'
import { notFound, validation } from '../../contract/errors.ts'
import type { PaymentEventAnswer } from '../../contract/payment.ts'
import { ForgedEvent } from '../../integrations/stripe.ts'
import { wakePayments } from '../../store/payments.ts'

/** Throws `validation` for a call that is not the provider's, and `not_found` where there is none. */
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
    throw validation([{ path: 'stripe-signature', message: 'is not of this body, or is too old' }])
  }
  return { received: true }
}
