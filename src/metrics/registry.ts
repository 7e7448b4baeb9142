import { collectDefaultMetrics, Registry } from 'prom-client'

/** With what is true of every process: its memory, CPU and files, and how late its event loop is. */
export function createRegistry(): Registry {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  return registry
}
