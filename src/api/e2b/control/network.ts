// What a sandbox may reach, in the words of this interface and as rules of egress. What has no counterpart is refused.

import { isIP } from 'node:net'
import { z } from 'zod'
import { validation } from '../../../contract/errors.ts'
import type { EgressAsked } from '../../../contract/egress.ts'
import { notSupported } from '../errors.ts'

/** How this interface writes all addresses. */
export const EVERYWHERE = '0.0.0.0/0'

const entries = z.array(z.string().max(300)).max(128)

export const networkSchema = z.object({
  allowOut: entries.optional(),
  denyOut: entries.optional(),
  allowPublicTraffic: z.boolean().nullish(),
  rules: z.record(z.string(), z.unknown()).nullish(),
  egressProxy: z.record(z.string(), z.unknown()).nullish(),
  maskRequestHost: z.string().nullish(),
  httpsPorts: z.array(z.unknown()).nullish(),
})
export type Network = z.output<typeof networkSchema>

/** Null: what the credential and its team allow. */
export function egressOf(network: Network, internet: boolean | null | undefined): EgressAsked | null {
  refuseOthers(network)
  const { allowOut = [], denyOut = [] } = network
  const isClosed = internet === false || denyOut.includes(EVERYWHERE)
  const denied = denyOut.find((entry) => entry !== EVERYWHERE)
  if (denied !== undefined)
    throw notSupported(
      `network.denyOut "${denied}": deny all traffic (${EVERYWHERE}) and list what is allowed in allowOut. A denied range`,
    )
  const name = allowOut.find((entry) => isIP(entry.split('/')[0] ?? '') === 0)
  if (!isClosed && name !== undefined)
    throw validation([
      {
        path: 'network.denyOut',
        message: `must contain ${EVERYWHERE} where allowOut has names such as "${name}"`,
      },
    ])
  if (!isClosed || allowOut.includes(EVERYWHERE)) return internet === true ? { mode: 'open' } : null
  return allowOut.length === 0 ? { mode: 'none' } : { mode: 'listed', allow: allowOut }
}

function refuseOthers(network: Network): void {
  const { rules, egressProxy, httpsPorts } = network
  if (rules && Object.keys(rules).length > 0) throw notSupported('network.rules')
  if (egressProxy) throw notSupported('network.egressProxy')
  if (httpsPorts && httpsPorts.length > 0) throw notSupported('network.httpsPorts')
}
