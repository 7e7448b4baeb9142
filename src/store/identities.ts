// People's identities at providers, and sign-ins with a provider in progress. The data of such a sign-in is encrypted
// by the caller.

import type { Kysely } from 'kysely'
import type { Provider } from '../contract/me.ts'
import type { Database } from './schema.ts'
import type { ProviderSignInsTable } from './tables/identities.ts'

type Identity = { provider: Provider; subject: string }

export async function findUserOfIdentity(
  db: Kysely<Database>,
  { provider, subject }: Identity,
): Promise<string | null> {
  const row = await db
    .selectFrom('identities')
    .select('user_id')
    .where('provider', '=', provider)
    .where('subject', '=', subject)
    .executeTakeFirst()
  return row?.user_id ?? null
}

/** Of concurrent calls the first wins. Returns whether it was this one. */
export async function insertIdentity(
  db: Kysely<Database>,
  { provider, subject, userId, createdAt }: Identity & { userId: string; createdAt: Date },
): Promise<boolean> {
  const result = await db
    .insertInto('identities')
    .values({ provider, subject, user_id: userId, created_at: createdAt })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst()
  return result.numInsertedOrUpdatedRows === 1n
}

export async function insertProviderSignIn(
  db: Kysely<Database>,
  signIn: Pick<ProviderSignInsTable, 'prefix' | 'hash' | 'provider' | 'sealed'> & { expiresAt: Date },
): Promise<void> {
  const { expiresAt, ...fields } = signIn
  await db
    .insertInto('provider_sign_ins')
    .values({ ...fields, expires_at: expiresAt })
    .execute()
}

export type ProviderSignIn = { hash: Buffer; sealed: Buffer }

/** Finds it once: a second or late call finds nothing. */
export async function takeProviderSignIn(
  db: Kysely<Database>,
  { prefix, provider, now }: { prefix: string; provider: Provider; now: Date },
): Promise<ProviderSignIn | null> {
  const row = await db
    .deleteFrom('provider_sign_ins')
    .where('prefix', '=', prefix)
    .where('provider', '=', provider)
    .where('expires_at', '>', now)
    .returning(['hash', 'sealed'])
    .executeTakeFirst()
  return row ?? null
}

export async function deleteProviderSignIns(
  db: Kysely<Database>,
  { expiredBefore }: { expiredBefore: Date },
): Promise<void> {
  await db.deleteFrom('provider_sign_ins').where('expires_at', '<', expiredBefore).execute()
}
