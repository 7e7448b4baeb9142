import type { Configuration } from 'openid-client'
import type { App } from '../../app.ts'
import type { ProviderClient } from '../../config.ts'
import { notFound, providerError } from '../../contract/errors.ts'
import type { Provider } from '../../contract/me.ts'
import { providerKinds } from './list.ts'

/** Throws `not_found` for a provider this service is not registered at, and `provider_error` for one that is away. */
export async function connect(
  { config }: App,
  provider: Provider,
): Promise<{ client: ProviderClient; configuration: Configuration }> {
  const client = config.signIn[provider]
  if (client === null) throw notFound('provider', provider)
  try {
    return { client, configuration: await providerKinds[provider].connect(client) }
  } catch (cause) {
    throw providerError('The provider does not answer; try again, or sign in by a link.', { cause })
  }
}
