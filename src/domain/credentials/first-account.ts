// The first start makes the first account, so that a fresh install needs no provider to sign in with
// (design 7). Its team may do everything, and so may its key.

import { type Kysely, sql } from 'kysely'
import type { Clock } from '../../lib/clock.ts'
import type { Database } from '../../store/db.ts'
import { findFirstUser } from '../../store/teams.ts'
import { createAccount } from '../accounts/create.ts'
import { createKey } from './keys.ts'
import { unrestrictedPolicy } from './unrestricted-policy.ts'

const firstEmail = 'operator@berth.localhost'

/** A number of our own choice: two processes that start at once must not both make an account. */
const FIRST_ACCOUNT_LOCK = 0x62657274

/** Answers the first account's key in plain when this call made it, and null when there is an account. */
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
