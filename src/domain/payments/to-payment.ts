import type { Payment } from '../../contract/payment.ts'
import type { PaymentRecord } from '../../store/payments.ts'

export function toPayment(record: PaymentRecord): Payment {
  const { id, state, amount_cents, checkout_url, created_by, created_at, closed_at } = record
  return {
    id,
    state,
    amountCents: amount_cents,
    checkoutUrl: state === 'open' ? checkout_url : null,
    createdBy: created_by,
    createdAt: created_at.toISOString(),
    closedAt: closed_at?.toISOString() ?? null,
  }
}
