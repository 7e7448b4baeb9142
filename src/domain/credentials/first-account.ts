// Creates the first account at the first start, so that a new installation needs no sign-in provider (design 7). Its
// team and its key have no limits.

import { type Kysely, sql } from 'kysely'
import type { Clock } from '../../lib/clock.ts'
import type { Database } from '../../store/db.ts'
import { findFirstUser } from '../../store/teams.ts'
import { createAccount } from '../accounts/create.ts'
import { createKey } from './keys.ts'
import { unrestrictedPolicy } from './unrestricted-policy.ts'

const firstEmail = 'operator@berth.localhost'

/** An arbitrary lock id: two processes that start together must not both create an account. */
const FIRST_ACCOUNT_LOCK = 0x62657274

/** Returns the plain key of the first account if this call created it; null if there is an account already. */
export async function ensureFirstAccount({
  db,
  clock,
  freeCreditsCents,
}: {
  db: Kysely<Database>
  clock: Clock
  freeCreditsCents: number
}): Promise<{ apiKey: string } | null> {
  return await db.transaction().execute(async (transaction) => {
    await sql`select pg_advisory_xact_lock(${FIRST_ACCOUNT_LOCK})`.execute(transaction)
    if (await findFirstUser(transaction)) return null

    const createdAt = clock.now()
    const { userId, teamId } = await createAccount(transaction, {
      email: firstEmail,
      name: 'Operator',
      admin: true,
      plan: 'team',
      paysAsItGoes: true,
      freeCreditsCents,
      createdAt,
    })
    const { secret } = await createKey(transaction, {
      teamId,
      name: 'First key',
      policy: unrestrictedPolicy,
      createdBy: userId,
      createdAt,
    })
    return { apiKey: secret }
  })
}
