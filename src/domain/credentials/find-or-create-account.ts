// Returns the account of an address, and creates it if there is none; concurrent sign-ins get the same account.

import type { Kysely } from 'kysely'
import type { Config } from '../../config.ts'
import type { Database } from '../../store/db.ts'
import { findUserOfAddress, lockAddress } from '../../store/users.ts'
import { createAccount } from '../accounts/create.ts'

type NewcomersTerms = Pick<Config, 'freeCreditsCents'>

/** Call it in a transaction, for a verified address. `isProven`: the account's address was verified before. */
export async function findOrCreateAccount(
  db: Kysely<Database>,
  { email, name, at, freeCreditsCents }: NewcomersTerms & { email: string; name: string; at: Date },
): Promise<{ userId: string; isProven: boolean }> {
  await lockAddress(db, email)
  const user = await findUserOfAddress(db, email)
  if (user) return { userId: user.id, isProven: user.emailVerified }
  const { userId } = await createAccount(db, {
    email,
    name,
    admin: false,
    plan: 'hobby',
    paysAsItGoes: false,
    freeCreditsCents,
    createdAt: at,
  })
  return { userId, isProven: true }
}

export function nameFrom(email: string): string {
  return email.split('@')[0] ?? email
}
