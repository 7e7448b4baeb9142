// The credits that teams have left: grants and payments, less charges and the cost of units since the last charge.

import type { Kysely } from 'kysely'
import { toCents } from '../../lib/money.ts'
import type { Database } from '../../store/db.ts'
import { findBalances } from '../../store/credits.ts'

/** Returns the balances by team id, as of the last heartbeat. */
export async function creditBalanceCents(
  db: Kysely<Database>,
  teamIds: readonly string[],
): Promise<Map<string, number>> {
  const balances = await findBalances(db, teamIds)
  return new Map([...balances].map(([id, nanoCents]) => [id, toCents(nanoCents)]))
}
