// The metrics of the gateway process.

import { Gauge } from 'prom-client'
import { createRegistry } from './registry.ts'
import type { Metrics } from './serve.ts'

/** The gateway is a process of its own, and only it can measure its event loop and connections. */
export function createGatewayMetrics(count: () => { connections: number; visits: number }): Metrics {
  const registry = createRegistry()
  const registers = [registry]
  const connections = new Gauge({
    name: 'berth_gateway_connections',
    help: 'Connections of visitors',
    registers,
  })
  const visits = new Gauge({ name: 'berth_gateway_visits', help: 'Visits under way', registers })
  return {
    contentType: registry.contentType,
    read: async () => {
      const now = count()
      connections.set(now.connections)
      visits.set(now.visits)
      return await registry.metrics()
    },
    health: async () => ({ isWell: true, parts: {} }),
  }
}
