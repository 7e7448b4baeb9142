// The gateway that serves a unit is that of the unit's host.

import type { App } from '../../app.ts'
import { type GatewayFacts, gatewayFactsOf } from '../../contract/gateway-facts.ts'
import { listGatewayFacts } from '../../store/host-gateways.ts'

/** Of another host its engine says this before any unit is there (domain/hosts/facts.ts), and its gateway when it connects. */
export function gatewayOf(
  { config, gateways }: Pick<App, 'config' | 'gateways'>,
  { hostId }: { hostId: string },
): GatewayFacts {
  return gateways.get(hostId) ?? gatewayFactsOf(config)
}

/** What gateways of other hosts have said before this server began. */
export async function recallGateways(app: App): Promise<void> {
  for (const [hostId, facts] of await listGatewayFacts(app.db)) app.gateways.set(hostId, facts)
}
