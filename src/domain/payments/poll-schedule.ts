// When to poll a payment again, since events can be lost: at growing intervals, and not for ever.

import type { PaymentState } from '../../contract/payment.ts'
import { DAY, HOUR, MINUTE, SECOND } from '../../lib/clock.ts'

const watched = {
  // No one can have paid yet, because no URL was returned.
  created: { firstMs: 10 * SECOND, longestMs: 5 * MINUTE, forMs: HOUR },
  // A checkout is valid for a day; a debit that it began may take two weeks.
  open: { firstMs: MINUTE, longestMs: HOUR, forMs: 30 * DAY },
  // A payment can be refunded, and disputed for some months.
  paid: { firstMs: MINUTE, longestMs: 30 * DAY, forMs: 180 * DAY },
  // In case money still arrives.
  expired: { firstMs: MINUTE, longestMs: HOUR, forMs: 30 * DAY },
  failed: { firstMs: MINUTE, longestMs: HOUR, forMs: 30 * DAY },
} as const satisfies Record<PaymentState, { firstMs: number; longestMs: number; forMs: number }>

type Looked = { state: PaymentState; looks: number; created_at: Date }

/** Returns null if it is not polled any more. */
export function nextPollAt({ state, looks, created_at }: Looked, now: Date): Date | null {
  const { firstMs, longestMs, forMs } = watched[state]
  if (now.getTime() - created_at.getTime() > forMs) return null
  return new Date(now.getTime() + Math.min(firstMs * 2 ** Math.max(0, looks - 1), longestMs))
}
