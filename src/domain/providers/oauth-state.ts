// A sign-in with a provider that is in progress. Its token is in a cookie of the browser that began it, and `state`,
// which passes through the provider, is derived from the token: an answer that another browser requested is refused.
// The row stores what the provider's answer must match; the first answer uses it up.

import { createHash, timingSafeEqual } from 'node:crypto'
import type { App } from '../../app.ts'
import type { Provider } from '../../contract/me.ts'
import { MINUTE } from '../../lib/clock.ts'
import { insertProviderSignIn, takeProviderSignIn } from '../../store/identities.ts'
import type { Database } from '../../store/db.ts'
import type { Kysely } from 'kysely'
import { newToken, tokenMatches, tokenPrefix } from '../credentials/token.ts'

export const OAUTH_STATE_LIFETIME_MS = 10 * MINUTE

/** `codeVerifier`: of PKCE, sent to the provider last. */
export type OAuthState = { nonce: string; codeVerifier: string }

export async function saveOAuthState(
  { clock, secretKey }: Pick<App, 'clock' | 'secretKey'>,
  db: Kysely<Database>,
  provider: Provider,
  attempt: OAuthState,
): Promise<{ token: string; state: string }> {
  const { token, prefix, hash } = newToken('providerSignIn')
  const sealed = secretKey.seal(Buffer.from(JSON.stringify(attempt)), context(provider, prefix))
  const expiresAt = new Date(clock.now().getTime() + OAUTH_STATE_LIFETIME_MS)
  await insertProviderSignIn(db, { prefix, hash, provider, sealed, expiresAt })
  return { token, state: stateOf(token) }
}

/** Returns null if there is none, it was answered before, or the answer belongs to another sign-in. */
export async function consumeOAuthState(
  { db, clock, secretKey }: App,
  provider: Provider,
  { token, state }: { token: string; state: string },
): Promise<OAuthState | null> {
  const prefix = tokenPrefix('providerSignIn', token)
  // Checked before the row is used up: a forged answer must not spoil the sign-in that the browser waits for.
  if (prefix === null || !isSame(state, stateOf(token))) return null
  const row = await takeProviderSignIn(db, { prefix, provider, now: clock.now() })
  if (!tokenMatches(token, row?.hash ?? null) || row === null) return null
  return JSON.parse(secretKey.open(row.sealed, context(provider, prefix)).toString())
}

function stateOf(token: string): string {
  return createHash('sha256').update(`state of ${token}`).digest('base64url')
}

function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}

function context(provider: Provider, prefix: string): string[] {
  return ['provider sign-in', provider, prefix]
}
