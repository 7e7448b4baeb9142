// The metrics of the gateway process, and of several on one host: there the first one shows those of all, each with the label
// `worker`.

import { Gauge } from 'prom-client'
import { mergeMetrics } from './merged.ts'
import { createRegistry } from './registry.ts'
import type { Metrics } from './serve.ts'

/** One of several gateways on one host. */
export type MeasuredWorker = { number: number }

/** The others, at the first one. */
export type OtherWorkers = {
  others: readonly number[]
  /** Returns the metrics of another one. Rejects if it does not answer. */
  read: (worker: number) => Promise<string>
}

/** The gateway is a process of its own, and only it can measure its event loop and connections. */
export function createGatewayMetrics(
  count: () => { connections: number; visits: number },
  worker: MeasuredWorker | null = null,
): Metrics {
  const registry = createRegistry()
  if (worker) registry.setDefaultLabels({ worker: String(worker.number) })
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

/** Those of all gateways. One that does not answer is down: its metrics are left out, and the health names it. */
export function withOtherWorkers(own: Metrics, { others, read }: OtherWorkers): Metrics {
  const readAll = async () => await Promise.all(others.map((worker) => read(worker).catch(() => null)))
  return {
    contentType: own.contentType,
    read: async () => {
      const texts = await readAll()
      const up = [true, ...texts.map((text) => text !== null)]
      const lines = [0, ...others].map(
        (worker, index) => `berth_gateway_worker_up{worker="${worker}"} ${up[index] ? 1 : 0}`,
      )
      const shown = ['# HELP berth_gateway_worker_up Whether a gateway answers', UP_TYPE, ...lines, ''].join(
        '\n',
      )
      return mergeMetrics([await own.read(), ...texts.filter((text) => text !== null), shown])
    },
    health: async () => {
      const texts = await readAll()
      const state = (text: string | null) => (text === null ? 'down' : 'ok')
      const workers = {
        0: 'ok',
        ...Object.fromEntries(others.map((other, at) => [other, state(texts[at] ?? null)])),
      }
      return { isWell: !texts.includes(null), parts: { workers } }
    },
  }
}

const UP_TYPE = '# TYPE berth_gateway_worker_up gauge'
