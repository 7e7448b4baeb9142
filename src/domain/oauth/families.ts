// The tokens of one sign-in of a program (a family). Each pair is derived from the refresh token before it, with a
// key of the family: only hashes of tokens are stored, and the same refresh token can get the same answer again.

import { randomBytes } from 'node:crypto'
import type { Kysely } from 'kysely'
import type { App } from '../../app.ts'
import { DAY, HOUR, SECOND } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import type { Database } from '../../store/db.ts'
import { insertFamily, insertPair, type OauthFamily } from '../../store/oauth-families.ts'
import { followingToken, type NewToken } from '../credentials/token.ts'

export const ACCESS_LIVES_MS = HOUR
/** Counted from the last use. */
export const REFRESH_LIVES_MS = 30 * DAY

type Pair = { access: NewToken; refresh: NewToken }

/** The answer to a token request (RFC 6749 5.1). */
export type TokenAnswer = {
  access_token: string
  token_type: 'Bearer'
  /** In seconds. */
  expires_in: number
  refresh_token: string
  scope: 'units'
}

export function pairAfter(key: Buffer, from: string): Pair {
  return { access: followingToken('access', key, from), refresh: followingToken('refresh', key, from) }
}

export function answerOf({ access, refresh }: Pair, livesMs: number): TokenAnswer {
  return {
    access_token: access.token,
    token_type: 'Bearer',
    expires_in: Math.floor(livesMs / SECOND),
    refresh_token: refresh.token,
    scope: 'units',
  }
}

/** Creates a family and its first pair, derived from the code. Call it in the transaction that uses up the code. */
export async function beginFamily(
  { secretKey }: Pick<App, 'secretKey'>,
  db: Kysely<Database>,
  { credentialId, clientId, code, at }: { credentialId: string; clientId: string; code: string; at: Date },
): Promise<{ id: string; pair: Pair }> {
  const id = newId('oauthFamily')
  const key = randomBytes(32)
  const sealedKey = secretKey.seal(key, contextOf(id))
  const refreshUntil = new Date(at.getTime() + REFRESH_LIVES_MS)
  await insertFamily(db, { id, credentialId, clientId, sealedKey, refreshUntil, at })
  const pair = pairAfter(key, code)
  const accessUntil = new Date(at.getTime() + ACCESS_LIVES_MS)
  await insertPair(db, { familyId: id, generation: 0, ...pair, accessUntil })
  return { id, pair }
}

export function keyOf({ secretKey }: Pick<App, 'secretKey'>, { id, sealedKey }: OauthFamily): Buffer {
  return secretKey.open(sealedKey, contextOf(id))
}

function contextOf(familyId: string): string[] {
  return ['oauth family', familyId]
}
