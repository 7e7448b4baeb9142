// Starts a sign-in with a provider.

import {
  buildAuthorizationUrl,
  calculatePKCECodeChallenge,
  randomNonce,
  randomPKCECodeVerifier,
} from 'openid-client'
import type { App } from '../../app.ts'
import type { Provider } from '../../contract/me.ts'
import { spendAllowance } from '../allowances/spend.ts'
import { peerKey } from '../credentials/failed-attempts.ts'
import { inTransaction } from '../transactions/transactions.ts'
import { saveOAuthState } from './oauth-state.ts'
import { clientOf, connect } from './connect.ts'
import { callbackUrl, providerKinds } from './list.ts'

/** `url`: the provider's page. `token`: for a cookie of this browser. */
export async function beginProviderSignIn(
  app: App,
  { provider, peer }: { provider: Provider; peer: string },
): Promise<{ url: string; token: string }> {
  const { scope, isOpenId } = providerKinds[provider]
  const client = clientOf(app, provider)
  const attempt = { nonce: randomNonce(), codeVerifier: randomPKCECodeVerifier() }
  const { token, state } = await inTransaction(app, async (db) => {
    await spendAllowance(app, db, 'provider-by-peer', peerKey(peer))
    return await saveOAuthState(app, db, provider, attempt)
  })
  const configuration = await connect(provider, client)
  const url = buildAuthorizationUrl(configuration, {
    redirect_uri: callbackUrl(app.config, provider),
    scope,
    state,
    code_challenge: await calculatePKCECodeChallenge(attempt.codeVerifier),
    code_challenge_method: 'S256',
    ...(isOpenId ? { nonce: attempt.nonce } : {}),
  })
  return { url: url.href, token }
}
