// Revokes tokens (RFC 7009): either token of a pair ends the whole family. The agent stays for the next sign-in.

import type { App } from '../../app.ts'
import { findOauthToken, revokeFamily } from '../../store/oauth-families.ts'
import { tokenMatches, tokenPrefix } from '../credentials/token.ts'

/** An unknown token, or one of another program, is ignored without an error. */
export async function revokeToken(
  { db, clock }: App,
  { token, clientId }: { token: string; clientId: string },
): Promise<void> {
  const prefix = tokenPrefix('refresh', token) ?? tokenPrefix('access', token)
  const found = prefix === null ? null : await findOauthToken(db, prefix)
  const matches = tokenMatches(token, found?.hash ?? null)
  if (!found || !matches || found.family.clientId !== clientId) return
  await revokeFamily(db, { id: found.family.id, at: clock.now() })
}
