// Checks that units about to run can be paid for: on every create, fork, start and wake.

import type { Kysely } from 'kysely'
import type { App } from '../../app.ts'
import type { Size } from '../../contract/policy.ts'
import type { Database } from '../../store/db.ts'
import { findSpending, type Spending } from '../../store/spending.ts'
import { checkSpending } from './spending-limits.ts'
import { sizeNanoCentsPerHour } from './prices.ts'

type Account = { teamId: string; credentialId: string }

/** Call it in the transaction that holds the team's lock, to decide by it. */
export async function readSpending(
  app: Pick<App, 'clock'>,
  db: Kysely<Database>,
  account: Account,
): Promise<Spending> {
  return await findSpending(db, { ...account, now: app.clock.now(), sizePrices: sizeNanoCentsPerHour })
}

/** Throws `payment_required` or `quota_exceeded`. */
export function checkAfforded(app: Pick<App, 'clock'>, spending: Spending, sizes: Size[]): void {
  if (sizes.length === 0) return
  const perHour = sizes.reduce((sum, size) => sum + sizeNanoCentsPerHour[size], 0n)
  checkSpending(spending, perHour, app.clock.now())
}
