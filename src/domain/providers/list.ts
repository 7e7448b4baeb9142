// The providers that people can sign in with: those the operator has configured.

import type { Config } from '../../config.ts'
import { type Provider, providers } from '../../contract/me.ts'
import { github } from './github.ts'
import { google } from './google.ts'
import type { ProviderKind } from './provider.ts'

export const providerKinds = { github, google } as const satisfies Record<Provider, ProviderKind>

export function listProviders({ signIn }: Pick<Config, 'signIn'>): Provider[] {
  return providers.filter((provider) => signIn[provider] !== null)
}

/** The URL that a provider redirects people to; it is registered there. */
export function callbackUrl({ publicUrl }: Pick<Config, 'publicUrl'>, provider: Provider): string {
  return `${publicUrl}/sign-in/${provider}`
}
