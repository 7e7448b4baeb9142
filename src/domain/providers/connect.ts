// Connects to an identity provider: its registration with this service, and its metadata.

import type { Configuration } from 'openid-client'
import type { App } from '../../app.ts'
import type { ProviderClient } from '../../lib/service-settings.ts'
import { type AppError, notFound, providerError } from '../../contract/errors.ts'
import type { Provider } from '../../contract/me.ts'
import { providerKinds } from './list.ts'

/** Throws `not_found` for a provider that this service has no registration with. */
export function clientOf({ config }: App, provider: Provider): ProviderClient {
  const client = config.signIn[provider]
  if (client === null) throw notFound('provider', provider)
  return client
}

/** Throws `provider_error` if the provider does not answer. */
export async function connect(provider: Provider, client: ProviderClient): Promise<Configuration> {
  try {
    return await providerKinds[provider].connect(client)
  } catch (cause) {
    throw doesNotAnswer(cause)
  }
}

export function doesNotAnswer(cause: unknown): AppError {
  return providerError('The provider does not answer; try again, or sign in by a link.', { cause })
}
