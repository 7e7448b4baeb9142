// Exchanges a refresh token for the next pair, once. Programs run several sessions with one token store, and answers
// get lost, so a token that comes again soon gets the current pair. If it comes later, or its successor is already in
// use, it was probably stolen, and all tokens of the family end (decisions/agents.md).

import type { App } from '../../app.ts'
import { MINUTE } from '../../lib/clock.ts'
import { touchOauthClient } from '../../store/oauth-clients.ts'
import {
  advanceFamily,
  findAccessOf,
  findOauthToken,
  insertPair,
  type OauthFamily,
  type OauthToken,
  revokeFamily,
} from '../../store/oauth-families.ts'
import { tokenMatches, tokenPrefix } from '../credentials/token.ts'
import { inTransaction } from '../transactions/transactions.ts'
import { OauthError } from './errors.ts'
import {
  ACCESS_LIVES_MS,
  answerOf,
  keyOf,
  pairAfter,
  REFRESH_LIVES_MS,
  type TokenAnswer,
} from './families.ts'

/** For this long after its exchange a refresh token is answered again. */
export const GRACE_MS = 10 * MINUTE
/** An access token with less time left is replaced instead of returned again. */
const WORTH_MS = MINUTE
/** The number of exchanges within the grace period, even by a program that refreshes with every call. */
const MAX_STEPS = 1000
/** Another call of the same program was faster at each try. */
const MAX_TRIES = 5

type Asked = { refreshToken: string; clientId: string }

/** Throws OauthError `invalid_grant`. */
export async function refreshTokens(app: App, asked: Asked): Promise<TokenAnswer> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const answer = await tryOnce(app, asked)
    if (answer) return answer
  }
  throw refused()
}

const refused = () => new OauthError('invalid_grant', 'The refresh token is no longer valid: sign in again.')

/** Returns null if another call of the same program changed the row that was read. */
async function tryOnce(app: App, { refreshToken, clientId }: Asked): Promise<TokenAnswer | null> {
  const now = app.clock.now()
  const prefix = tokenPrefix('refresh', refreshToken)
  const token = prefix === null ? null : await findOauthToken(app.db, prefix)
  const matches = tokenMatches(refreshToken, token?.hash ?? null)
  if (!token || !matches || token.family.clientId !== clientId || hasEnded(token, now)) throw refused()
  const { family, generation } = token
  const key = keyOf(app, family)
  if (generation === family.generation) return await rotate(app, family, pairAfter(key, refreshToken))
  if (!(await isRepeatable(app, token, now))) {
    await revokeFamily(app.db, { id: family.id, at: now })
    throw refused()
  }
  return await tellAgain(app, { family, key, refreshToken, steps: family.generation - generation })
}

function hasEnded({ family, isAgentLive, policyExpiresAt }: OauthToken, now: Date): boolean {
  if (family.revokedAt !== null || family.refreshUntil <= now || !isAgentLive) return true
  return policyExpiresAt !== null && new Date(policyExpiresAt) <= now
}

async function rotate(
  app: App,
  { id, generation, clientId }: OauthFamily,
  pair: ReturnType<typeof pairAfter>,
): Promise<TokenAnswer | null> {
  return await inTransaction(app, async (db) => {
    const at = app.clock.now()
    const refreshUntil = new Date(at.getTime() + REFRESH_LIVES_MS)
    const accessUntil = new Date(at.getTime() + ACCESS_LIVES_MS)
    if (!(await advanceFamily(db, { id, from: generation, at, refreshUntil }))) return null
    await insertPair(db, { familyId: id, generation: generation + 1, ...pair, accessUntil })
    await touchOauthClient(db, { id: clientId, at })
    return answerOf(pair, ACCESS_LIVES_MS)
  })
}

/** True soon after the exchange, or while the answer cannot have arrived. */
async function isRepeatable(
  { db }: App,
  { family, generation, retiredAt }: OauthToken,
  now: Date,
): Promise<boolean> {
  const steps = family.generation - generation
  if (steps > MAX_STEPS || retiredAt === null) return false
  if (now.getTime() - retiredAt.getTime() <= GRACE_MS) return true
  if (steps > 1) return false
  const successor = await findAccessOf(db, { familyId: family.id, generation: family.generation })
  return successor !== null && successor.usedAt === null
}

/**
 * Returns the current pair, derived from an earlier refresh token; the next pair if the current one is about to
 * expire.
 */
async function tellAgain(
  app: App,
  {
    family,
    key,
    refreshToken,
    steps,
  }: { family: OauthFamily; key: Buffer; refreshToken: string; steps: number },
): Promise<TokenAnswer | null> {
  let pair = pairAfter(key, refreshToken)
  for (let step = 1; step < steps; step++) pair = pairAfter(key, pair.refresh.token)
  const stored = await findAccessOf(app.db, { familyId: family.id, generation: family.generation })
  if (!stored || !stored.hash.equals(pair.access.hash)) return null
  const leftMs = stored.expiresAt.getTime() - app.clock.now().getTime()
  if (leftMs > WORTH_MS) return answerOf(pair, leftMs)
  return await rotate(app, family, pairAfter(key, pair.refresh.token))
}
