// Buys credits: stores a payment, has the provider make a checkout for it, and returns the URL to pay at. Only
// reconcile.ts finds out whether it was paid.

import { z } from 'zod'
import type { App } from '../../app.ts'
import { conflict, forbidden, providerError, unavailable } from '../../contract/errors.ts'
import { limits } from '../../contract/limits.ts'
import type { PaymentAnswer, PaymentCreate } from '../../contract/payment.ts'
import { newId } from '../../lib/ids.ts'
import type { PaymentProvider } from '../../integrations/stripe.ts'
import { countOpenPayments, findPayment, insertPayment, type PaymentRecord } from '../../store/payments.ts'
import type { Caller } from '../credentials/caller.ts'
import type { Once } from '../idempotency/once.ts'
import { amongPeople } from '../teams/lock.ts'
import { openPayment } from './open.ts'
import { TAKEN_FOR_MS } from './reconcile.ts'
import { toPayment } from './to-payment.ts'

const AGAIN_AFTER_S = 5

/** Throws `forbidden` if the service takes no payments. */
export async function createPayment(
  app: App,
  caller: Caller,
  { amountCents }: PaymentCreate,
  once: Once | null,
): Promise<PaymentAnswer> {
  const provider = providerOf(app)
  const { teamId, userId } = caller
  const payment = await amongPeople(app, caller, once, async (db, { allowed }) => {
    allowed('payment.create')
    if ((await countOpenPayments(db, teamId)) >= limits.openPayments) {
      throw conflict(
        `The team has ${limits.openPayments} unpaid payments; pay one of them, or wait until they expire, within a day.`,
      )
    }
    const createdAt = app.clock.now()
    const made = await insertPayment(db, {
      id: newId('payment'),
      team_id: teamId,
      created_by: userId ?? caller.credentialId,
      amount_cents: amountCents,
      createdAt,
      dueAt: new Date(createdAt.getTime() + TAKEN_FOR_MS),
    })
    await once?.keep(db, { paymentId: made.id } satisfies Kept)
    return made
  })
  return await tellWhereToPay(app, provider, payment)
}

const keptSchema = z.object({ paymentId: z.string() })
type Kept = z.infer<typeof keptSchema>

/** For a call that broke off after its payment was stored. */
export async function resumePayment(app: App, kept: unknown): Promise<PaymentAnswer> {
  const { paymentId } = keptSchema.parse(kept)
  const payment = await findPayment(app.db, paymentId)
  if (payment === null) throw new Error(`the payment ${paymentId} is gone`)
  return await tellWhereToPay(app, providerOf(app), payment)
}

async function tellWhereToPay(
  app: App,
  provider: PaymentProvider,
  payment: PaymentRecord,
): Promise<PaymentAnswer> {
  const now = payment.state === 'created' ? await tryToOpen(app, provider, payment) : payment
  if (now.state === 'failed') {
    throw providerError('The payment provider refused this payment; try another amount.', {
      details: { paymentId: now.id },
    })
  }
  return { payment: toPayment(now) }
}

async function tryToOpen(
  app: App,
  provider: PaymentProvider,
  payment: PaymentRecord,
): Promise<PaymentRecord> {
  try {
    return await openPayment(app, provider, payment)
  } catch (cause) {
    throw unavailable(
      'The payment provider does not answer; nothing was paid. Send the call again, with the same Idempotency-Key if it had one.',
      AGAIN_AFTER_S,
      cause,
    )
  }
}

function providerOf({ payments }: App): PaymentProvider {
  if (payments !== null) return payments
  throw forbidden('This service takes no payments; ask its operator for credits.')
}
