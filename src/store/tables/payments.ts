// The columns of `payments` (store/payments.ts).

import type { PaymentState } from '../../contract/payment.ts'

export type PaymentsTable = {
  id: string
  team_id: string
  created_by: string
  amount_cents: number
  state: PaymentState
  /** The provider's ids of the checkout and the intent. */
  checkout_id: string | null
  checkout_url: string | null
  intent_id: string | null
  revision: number
  /** Polls in a row without a change. */
  looks: number
  due_at: Date | null
  created_at: Date
  closed_at: Date | null
}
