// Google, or another OpenID provider configured in its place (BERTH_GOOGLE_URL).

import { allowInsecureRequests, ClientSecretPost, discovery } from 'openid-client'
import { PROVIDER_TIMEOUT_S, type ProviderKind } from './provider.ts'

export const google: ProviderKind = {
  scope: 'openid email profile',
  isOpenId: true,
  connect: async ({ url, clientId, clientSecret }) =>
    await discovery(new URL(url), clientId, undefined, ClientSecretPost(clientSecret), {
      // Only if the operator has configured such an address.
      execute: url.startsWith('http:') ? [allowInsecureRequests] : [],
      timeout: PROVIDER_TIMEOUT_S,
    }),
  identify: async (tokens) => {
    const claims = tokens.claims()
    if (!claims) throw new Error('the provider returned no identity')
    const { sub, email, email_verified: isVerified, name } = claims
    return {
      subject: sub,
      verifiedEmail: isVerified === true && typeof email === 'string' ? email : null,
      name: typeof name === 'string' ? name : null,
    }
  },
}
