// Reads and ends sessions by their token. authenticate.ts authenticates calls.

import type { Kysely } from 'kysely'
import type { Clock } from '../../lib/clock.ts'
import type { Database } from '../../store/db.ts'
import { findSession, revokeSession, type Session } from '../../store/sessions.ts'
import { tokenMatches, tokenPrefix } from './token.ts'

type Needs = { db: Kysely<Database>; clock: Clock }

/** Returns the valid session of a token, or null; an unknown token takes the same work as a known one. */
export async function findLiveSession({ db, clock }: Needs, token: string): Promise<Session | null> {
  const prefix = tokenPrefix('session', token)
  const session = prefix === null ? null : await findSession(db, prefix)
  const matches = tokenMatches(token, session?.hash ?? null)
  if (!session || !matches) return null
  return session.revokedAt === null && session.expiresAt > clock.now() ? session : null
}

export async function describeSession(
  needs: Needs,
  token: string,
): Promise<{ email: string; name: string } | null> {
  const session = await findLiveSession(needs, token)
  return session && { email: session.email, name: session.userName }
}

export async function endSession(needs: Needs, token: string): Promise<void> {
  const session = await findLiveSession(needs, token)
  if (session) await revokeSession(needs.db, { id: session.id, at: needs.clock.now() })
}
