// Secrets of the team: units get placeholders, and the values are put into their requests on the way out.

import type { Secret, SecretAnswer, SecretDeleted, SecretList, SecretPut } from './contract.ts'
import type { CallOptions, Transport } from './transport.ts'

export type Secrets = {
  /** Those that this key may bind to units, without values. */
  list: (options?: CallOptions) => Promise<Secret[]>
  /** Makes the secret, or replaces its value and hosts; units that run use the new ones from then on. */
  put: (name: string, secret: SecretPut, options?: CallOptions) => Promise<Secret>
  /** Answers the units that had it. Throws `not_found`. */
  delete: (name: string, options?: CallOptions) => Promise<SecretDeleted['unbound']>
}

export function secretsOf(transport: Transport): Secrets {
  const pathOf = (name: string) => `/v1/secrets/${encodeURIComponent(name)}`
  return {
    list: async (options = {}) =>
      (await transport.json<SecretList>({ method: 'GET', path: '/v1/secrets', ...options })).secrets,
    put: async (name, body, options = {}) =>
      (await transport.json<SecretAnswer>({ method: 'PUT', path: pathOf(name), body, ...options })).secret,
    delete: async (name, options = {}) =>
      (await transport.json<SecretDeleted>({ method: 'DELETE', path: pathOf(name), ...options })).unbound,
  }
}
