// The engine of a host without a server also says how visitors reach its units. Its gateway says the same, later: by then a
// unit may have been shown.

import { gatewayFactsOf, type GatewaySettings } from '../contract/gateway-facts.ts'
import type { Engine } from './engine.ts'

export function withGateway(engine: Engine, settings: GatewaySettings): Engine {
  const gateway = gatewayFactsOf(settings)
  return {
    ...engine,
    capacity: async () => {
      const capacity = await engine.capacity()
      return capacity.host ? { ...capacity, host: { ...capacity.host, gateway } } : capacity
    },
  }
}
