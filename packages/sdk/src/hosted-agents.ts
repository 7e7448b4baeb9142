// Environments of vendors whose hosted agents work in units here. People add and change them, in the dashboard.

import type { HostedAnswer, HostedEnvironment, HostedList } from './contract.ts'
import type { CallOptions, Transport } from './transport.ts'

export type HostedAgents = {
  /** Each with its state and last error. */
  list: (options?: CallOptions) => Promise<HostedEnvironment[]>
  /** With its sessions, those that changed last first. Throws `not_found`. */
  get: (id: string, options?: CallOptions) => Promise<HostedAnswer>
}

export function hostedAgentsOf(transport: Transport): HostedAgents {
  const path = '/v1/hosted-agents'
  return {
    list: async (options = {}) =>
      (await transport.json<HostedList>({ method: 'GET', path, ...options })).environments,
    get: async (id, options = {}) =>
      await transport.json<HostedAnswer>({
        method: 'GET',
        path: `${path}/${encodeURIComponent(id)}`,
        ...options,
      }),
  }
}
