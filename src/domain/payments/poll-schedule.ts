// When a payment is looked at again of our own accord, since events about it can be lost: less and less often, and not
// for ever.

import type { PaymentState } from '../../contract/payment.ts'
import { DAY, HOUR, MINUTE, SECOND } from '../../lib/clock.ts'

const watched = {
  // Nobody can have paid: nobody was told where.
  created: { firstMs: 10 * SECOND, longestMs: 5 * MINUTE, forMs: HOUR },
  // A checkout lives for a day; a debit that it began may take two weeks.
  open: { firstMs: MINUTE, longestMs: HOUR, forMs: 30 * DAY },
  // What was paid can be refunded, and disputed for some months.
  paid: { firstMs: MINUTE, longestMs: 30 * DAY, forMs: 180 * DAY },
  // Only if an event says that money has come all the same.
  expired: { firstMs: MINUTE, longestMs: HOUR, forMs: 30 * DAY },
  failed: { firstMs: MINUTE, longestMs: HOUR, forMs: 30 * DAY },
} as const satisfies Record<PaymentState, { firstMs: number; longestMs: number; forMs: number }>

type Looked = { state: PaymentState; looks: number; created_at: Date }

/** Null: not any more. */
export function nextPollAt({ state, looks, created_at }: Looked, now: Date): Date | null {
  const { firstMs, longestMs, forMs } = watched[state]
  if (now.getTime() - created_at.getTime() > forMs) return null
  return new Date(now.getTime() + Math.min(firstMs * 2 ** Math.max(0, looks - 1), longestMs))
}
