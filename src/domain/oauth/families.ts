// Tokens of one sign-in of a program. Each pair follows from the refresh token before it, under a key of the family's own:
// nothing of a token is kept but its hash, and whoever asks again with the same one can be told the same.

import { randomBytes } from 'node:crypto'
import type { Kysely } from 'kysely'
import type { App } from '../../app.ts'
import { DAY, HOUR, SECOND } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import type { Database } from '../../store/db.ts'
import { insertFamily, insertPair, type OauthFamily } from '../../store/oauth-families.ts'
import { followingToken, type NewToken } from '../credentials/token.ts'

export const ACCESS_LIVES_MS = HOUR
/** From its last use on. */
export const REFRESH_LIVES_MS = 30 * DAY

type Pair = { access: NewToken; refresh: NewToken }

/** What a program is answered (RFC 6749 5.1). */
export type TokenAnswer = {
  access_token: string
  token_type: 'Bearer'
  /** Seconds. */
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

/** A family, and its first pair, which follows from the code. For the transaction that uses the code up. */
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
