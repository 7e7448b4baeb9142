// Signing in by a one-time link: whoever holds it proves an email address, since it came by mail or from
// the operator's own command. The link is used up once, and what it gives is a session.

import type { Kysely } from 'kysely'
import type { Config } from '../../config.ts'
import { unauthorized } from '../../contract/errors.ts'
import { type Clock, DAY, HOUR } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import type { Database } from '../../store/db.ts'
import { findSignInLink, insertSession, insertSignInLink, useSignInLink } from '../../store/sessions.ts'
import { findFirstUser, findUserByEmail } from '../../store/teams.ts'
import { createAccount, type NewAccount } from '../accounts/create.ts'
import { newToken, tokenMatches, tokenPrefix } from './token.ts'

const LINK_LIVES_MS = DAY
export const SESSION_LIVES_MS = 30 * 24 * HOUR

type Needs = { db: Kysely<Database>; clock: Clock }

/** A link for this address, or for the first account when none is given. It works once, for a day. */
export async function createSignInLink(
  { db, clock }: Needs,
  email: string | null,
): Promise<{ token: string; email: string; expiresAt: Date }> {
  const address = email ?? (await findFirstUser(db))?.email
  if (address === undefined) throw new Error('There is no account yet; start Berth once to make the first.')
  const { token, prefix, hash } = newToken('signIn')
  const createdAt = clock.now()
  const expiresAt = new Date(createdAt.getTime() + LINK_LIVES_MS)
  await insertSignInLink(db, { prefix, hash, email: address, createdAt, expiresAt })
  return { token, email: address, expiresAt }
}

/** The address a link signs in, as long as it would work; changes nothing. */
export async function readSignInLink({ db, clock }: Needs, token: string): Promise<string | null> {
  const prefix = tokenPrefix('signIn', token)
  const link = prefix === null ? null : await findSignInLink(db, prefix)
  const matches = tokenMatches(token, link?.hash ?? null)
  if (!link || !matches || link.usedAt !== null || link.expiresAt <= clock.now()) return null
  return link.email
}

/** Uses a link up. Answers the session's token; an address nobody has yet gets an account. */
export async function signIn(
  { db, clock, config }: Needs & { config: Pick<Config, 'freeCreditsCents'> },
  linkToken: string,
): Promise<{ token: string; expiresAt: Date }> {
  const email = await readSignInLink({ db, clock }, linkToken)
  const prefix = tokenPrefix('signIn', linkToken)
  const refused = unauthorized('This sign-in link has been used or has expired; ask for a new one.')
  if (email === null || prefix === null) throw refused

  return await db.transaction().execute(async (transaction) => {
    const createdAt = clock.now()
    if (!(await useSignInLink(transaction, prefix, createdAt))) throw refused
    const userId = await findOrCreateUser(transaction, email, { createdAt, ...config })
    const { token, prefix: sessionPrefix, hash } = newToken('session')
    const expiresAt = new Date(createdAt.getTime() + SESSION_LIVES_MS)
    await insertSession(transaction, {
      id: newId('session'),
      userId,
      prefix: sessionPrefix,
      hash,
      createdAt,
      expiresAt,
    })
    return { token, expiresAt }
  })
}

async function findOrCreateUser(
  db: Kysely<Database>,
  email: string,
  { createdAt, freeCreditsCents }: Pick<NewAccount, 'createdAt' | 'freeCreditsCents'>,
): Promise<string> {
  const user = await findUserByEmail(db, email)
  if (user) return user.id
  const { userId } = await createAccount(db, {
    email,
    name: email.split('@')[0] ?? email,
    admin: false,
    plan: 'hobby',
    paysAsItGoes: false,
    freeCreditsCents,
    createdAt,
  })
  return userId
}
