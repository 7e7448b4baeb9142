// GitHub is not an OpenID provider: its API identifies the person to the holder of the access token.

import { allowInsecureRequests, ClientSecretPost, Configuration, fetchProtectedResource } from 'openid-client'
import { z } from 'zod'
import { PROVIDER_TIMEOUT_S, type ProviderKind } from './provider.ts'

const userSchema = z.object({ id: z.int(), login: z.string(), name: z.string().nullish() })
const emailsSchema = z.array(z.object({ email: z.string(), primary: z.boolean(), verified: z.boolean() }))

export const github: ProviderKind = {
  scope: 'read:user user:email',
  isOpenId: false,
  connect: async ({ url, clientId, clientSecret }) => {
    const server = {
      issuer: `${url}/login/oauth`,
      authorization_endpoint: `${url}/login/oauth/authorize`,
      token_endpoint: `${url}/login/oauth/access_token`,
    }
    const configuration = new Configuration(server, clientId, undefined, ClientSecretPost(clientSecret))
    configuration.timeout = PROVIDER_TIMEOUT_S
    // Only if the operator has configured such an address.
    if (url.startsWith('http:')) allowInsecureRequests(configuration)
    return configuration
  },
  identify: async ({ access_token: token }, configuration, { apiUrl }) => {
    const read = async (path: string): Promise<unknown> => {
      const answer = await fetchProtectedResource(configuration, token, new URL(apiUrl + path), 'GET')
      if (!answer.ok) throw new Error(`the provider answered ${path} with ${answer.status}`)
      return await answer.json()
    }
    const user = userSchema.parse(await read('/user'))
    const emails = emailsSchema.parse(await read('/user/emails'))
    const verified = emails.find(({ primary, verified: isVerified }) => primary && isVerified)
    return {
      subject: String(user.id),
      verifiedEmail: verified?.email ?? null,
      name: user.name ?? user.login,
    }
  },
}
