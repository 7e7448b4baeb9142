// The providers people can sign in with: those the operator has registered this service at.

import type { Config } from '../../config.ts'
import { type Provider, providers } from '../../contract/me.ts'

export function listProviders({ signIn }: Pick<Config, 'signIn'>): Provider[] {
  return providers.filter((provider) => signIn[provider] !== null)
}
