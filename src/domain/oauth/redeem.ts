// Exchanges a code for tokens, once (RFC 6749 4.1.3): by the program that asked, with the same redirect, and with the
// secret of its challenge (RFC 7636). A second use ends the tokens of the first, because one of the two was a
// thief's.

import { createHash, timingSafeEqual } from 'node:crypto'
import type { App } from '../../app.ts'
import { revokeFamily, revokeSurplusFamilies } from '../../store/oauth-families.ts'
import { findOauthCode, type OauthCode, useOauthCode } from '../../store/oauth-requests.ts'
import { touchOauthClient } from '../../store/oauth-clients.ts'
import { tokenMatches, tokenPrefix } from '../credentials/token.ts'
import { inTransaction } from '../transactions/transactions.ts'
import { OauthError } from './errors.ts'
import { ACCESS_LIVES_MS, answerOf, beginFamily, type TokenAnswer } from './families.ts'

/** The most concurrent sign-ins of one client; the one idle longest ends. */
const MAX_FAMILIES = 20

export type Redemption = { code: string; clientId: string; redirectUri: string | null; verifier: string }

/** Throws OauthError `invalid_grant`. */
export async function redeemCode(app: App, redemption: Redemption): Promise<TokenAnswer> {
  const refused = new OauthError('invalid_grant', 'The code is not valid: start the sign-in again.')
  const prefix = tokenPrefix('code', redemption.code)
  const code = prefix === null ? null : await findOauthCode(app.db, prefix)
  const matches = tokenMatches(redemption.code, code?.hash ?? null)
  // A client without the challenge's secret has proven nothing, so it must not end any tokens.
  if (!code || !matches || !isFrom(code, redemption)) throw refused
  if (code.usedAt === null) {
    if (!code.isAgentLive) throw refused
    const answer = await takeCode(app, code, redemption.code)
    if (answer) return answer
  }
  const used = await findOauthCode(app.db, code.prefix)
  if (used?.familyId) await revokeFamily(app.db, { id: used.familyId, at: app.clock.now() })
  throw refused
}

function isFrom(code: OauthCode, { clientId, redirectUri, verifier }: Redemption): boolean {
  if (code.clientId !== clientId || (redirectUri !== null && redirectUri !== code.redirectUri)) return false
  if (!/^[A-Za-z0-9._~-]{43,128}$/.test(verifier)) return false
  const challenge = createHash('sha256').update(verifier).digest()
  const expected = Buffer.from(code.codeChallenge, 'base64url')
  return expected.length === challenge.length && timingSafeEqual(expected, challenge)
}

/** Returns null if another call was faster, or the code has expired. */
async function takeCode(
  app: App,
  { prefix, clientId, credentialId }: OauthCode,
  code: string,
): Promise<TokenAnswer | null> {
  const lost = new Error('the code was used up')
  try {
    return await inTransaction(app, async (db) => {
      const at = app.clock.now()
      const { id, pair } = await beginFamily(app, db, { credentialId, clientId, code, at })
      if (!(await useOauthCode(db, { prefix, familyId: id, at }))) throw lost
      await revokeSurplusFamilies(db, { credentialId, keep: MAX_FAMILIES, at })
      await touchOauthClient(db, { id: clientId, at })
      return answerOf(pair, ACCESS_LIVES_MS)
    })
  } catch (error) {
    if (error === lost) return null
    throw error
  }
}
