// Signing in by a one-time link: its holder controls the mail address, since the link came by mail or from the
// operator's command. The link works once and gives a session.

import type { Kysely } from 'kysely'
import type { App } from '../../app.ts'
import type { Config } from '../../config.ts'
import { unauthorized } from '../../contract/errors.ts'
import { type Clock, DAY } from '../../lib/clock.ts'
import type { Database } from '../../store/db.ts'
import { findSignInLink, insertSignInLink, useSignInLink } from '../../store/sessions.ts'
import { findFirstUser } from '../../store/teams.ts'
import { verifyAddress } from '../../store/users.ts'
import { findOrCreateAccount, nameFrom } from './find-or-create-account.ts'
import { beginSession, type BegunSession } from './begin-session.ts'
import { inTransaction } from '../transactions/transactions.ts'
import { newToken, tokenMatches, tokenPrefix } from './token.ts'

/** For a link of the operator, which is passed on to a person by hand. */
const LINK_LIVES_MS = DAY

type Needs = { db: Kysely<Database>; clock: Pick<Clock, 'now'> }

/** Returns a link for this address, or for the first account without an address. It works once. */
export async function createSignInLink(
  { db, clock }: Needs,
  email: string | null,
  livesMs = LINK_LIVES_MS,
): Promise<{ token: string; email: string; expiresAt: Date }> {
  const address = email ?? (await findFirstUser(db))?.email
  if (address === undefined) throw new Error('There is no account yet; start Berth once to make the first.')
  const { token, prefix, hash } = newToken('signIn')
  const createdAt = clock.now()
  const expiresAt = new Date(createdAt.getTime() + livesMs)
  await insertSignInLink(db, { prefix, hash, email: address, createdAt, expiresAt })
  return { token, email: address, expiresAt }
}

/** Returns the address that a link signs in, or null if it does not work any more; changes nothing. */
export async function readSignInLink({ db, clock }: Needs, token: string): Promise<string | null> {
  const prefix = tokenPrefix('signIn', token)
  const link = prefix === null ? null : await findSignInLink(db, prefix)
  const matches = tokenMatches(token, link?.hash ?? null)
  if (!link || !matches || link.usedAt !== null || link.expiresAt <= clock.now()) return null
  return link.email
}

/** Uses up a link. Returns the token of the session; a new address gets an account. */
export async function signIn(
  { db, clock, config }: Pick<App, 'db' | 'clock'> & { config: Pick<Config, 'freeCreditsCents'> },
  linkToken: string,
): Promise<BegunSession> {
  const email = await readSignInLink({ db, clock }, linkToken)
  const prefix = tokenPrefix('signIn', linkToken)
  const refused = unauthorized('This sign-in link has been used or has expired; ask for a new one.')
  if (email === null || prefix === null) throw refused

  return await inTransaction({ db, clock }, async (transaction) => {
    const at = clock.now()
    if (!(await useSignInLink(transaction, prefix, at))) throw refused
    const { userId, isProven } = await findOrCreateAccount(transaction, {
      email,
      name: nameFrom(email),
      at,
      freeCreditsCents: config.freeCreditsCents,
    })
    if (!isProven) await verifyAddress(transaction, userId)
    return await beginSession(transaction, { userId, at })
  })
}
