// What differs between providers: how they are spoken to, and how they say who somebody is.

import type { Configuration, TokenEndpointResponse, TokenEndpointResponseHelpers } from 'openid-client'
import type { ProviderClient } from '../../config.ts'

export type Tokens = TokenEndpointResponse & TokenEndpointResponseHelpers

export type Person = {
  /** What the provider calls them for good. */
  subject: string
  /** Null unless the provider has seen that it is theirs. */
  verifiedEmail: string | null
  name: string | null
}

export type ProviderKind = {
  scope: string
  /** It answers with a token it has signed, in which the nonce is. */
  isOpenId: boolean
  connect(client: ProviderClient): Promise<Configuration>
  identify(tokens: Tokens, configuration: Configuration, client: ProviderClient): Promise<Person>
}

/** Of each request to a provider. */
export const PROVIDER_TIMEOUT_S = 10
