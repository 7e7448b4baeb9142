// Every sign-in creates a new session with a new id. Reusing an earlier id would let anyone who knew it into the
// account (session fixation).

import type { Kysely } from 'kysely'
import { HOUR } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import type { Database } from '../../store/db.ts'
import { insertSession } from '../../store/sessions.ts'
import { newToken } from './token.ts'

export const SESSION_LIFETIME_MS = 30 * 24 * HOUR

export type BegunSession = { token: string; expiresAt: Date }

export async function beginSession(
  db: Kysely<Database>,
  { userId, at }: { userId: string; at: Date },
): Promise<BegunSession> {
  const { token, prefix, hash } = newToken('session')
  const expiresAt = new Date(at.getTime() + SESSION_LIFETIME_MS)
  await insertSession(db, { id: newId('session'), userId, prefix, hash, createdAt: at, expiresAt })
  return { token, expiresAt }
}
