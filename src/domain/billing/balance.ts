// What teams have left of their credits, less what was charged and what their units have cost since.

import type { Kysely } from 'kysely'
import { toCents } from '../../lib/money.ts'
import type { Database } from '../../store/db.ts'
import { findBalances } from '../../store/credits.ts'

/** Of teams by id, as of the last heartbeat. */
export async function creditBalanceCents(
  db: Kysely<Database>,
  teamIds: readonly string[],
): Promise<Map<string, number>> {
  const balances = await findBalances(db, teamIds)
  return new Map([...balances].map(([id, nanoCents]) => [id, toCents(nanoCents)]))
}
