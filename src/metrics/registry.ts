// The registry of metrics that every process begins with.

import { collectDefaultMetrics, Registry } from 'prom-client'

/** Contains the default metrics of every process: memory, CPU, open files and event loop delay. */
export function createRegistry(): Registry {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  return registry
}
