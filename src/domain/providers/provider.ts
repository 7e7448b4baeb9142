// The interface of an identity provider. Providers differ in their protocol, and in how they identify a person.

import type { Configuration, TokenEndpointResponse, TokenEndpointResponseHelpers } from 'openid-client'
import type { ProviderClient } from '../../lib/service-settings.ts'

export type Tokens = TokenEndpointResponse & TokenEndpointResponseHelpers

export type Person = {
  /** The provider's permanent id of the person. */
  subject: string
  /** Null unless the provider has verified the address. */
  verifiedEmail: string | null
  name: string | null
}

export type ProviderKind = {
  scope: string
  /** Whether it answers with a signed token that contains the nonce. */
  isOpenId: boolean
  connect(client: ProviderClient): Promise<Configuration>
  identify(tokens: Tokens, configuration: Configuration, client: ProviderClient): Promise<Person>
}

/** The timeout of each request to a provider. */
export const PROVIDER_TIMEOUT_S = 10
