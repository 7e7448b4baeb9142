// Connections to units, kept between two requests. Each belongs to one run of one unit and one of its ports: a
// request never uses a connection that was opened for another unit (reliability I10), and unexpected bytes on one
// only reach the unit's own visitors.

import { Agent } from 'node:http'
import type { Clock } from '../../lib/clock.ts'
import type { Route } from '../route.ts'
import { IDLE_MS } from '../kept-connections.ts'
import { createPlainConnections, type PlainConnections } from './plain-connections.ts'

const MAX_IDLE = 64
const KEEP_ALIVE_PROBE_MS = 30_000

/** Connections to one run of a unit: for Node's client, and for plain requests. */
export type RunConnections = { agent: Agent; plain: PlainConnections }

export type UnitConnections = {
  of(route: Route): RunConnections
  /** Ends all connections to a unit, including those in use. */
  forget(unitId: string): void
  /** Closes idle connections, and drops units without any. */
  sweep(): void
  close(): void
}

type Kept = RunConnections & { run: string }

export function createUnitConnections({ monotonicMs }: Pick<Clock, 'monotonicMs'>): UnitConnections {
  const byUnit = new Map<string, Kept>()
  /** The time of the last sweep: exact enough, and cheap to read. */
  let nowMs = monotonicMs()
  const forget = (unitId: string) => {
    const kept = byUnit.get(unitId)
    kept?.agent.destroy()
    kept?.plain.destroy()
    byUnit.delete(unitId)
  }
  return {
    of(route) {
      // The key needs no port: ports of an address are kept apart.
      const run = `${route.generation} ${route.address}`
      const kept = byUnit.get(route.unitId)
      if (kept?.run === run) return kept
      forget(route.unitId)
      const agent = new Agent({
        keepAlive: true,
        keepAliveMsecs: KEEP_ALIVE_PROBE_MS,
        scheduling: 'lifo',
        maxFreeSockets: MAX_IDLE,
        timeout: IDLE_MS,
      })
      const plain = createPlainConnections({
        host: route.address ?? '',
        maxIdle: MAX_IDLE,
        keepAliveProbeMs: KEEP_ALIVE_PROBE_MS,
        nowMs: () => nowMs,
      })
      const made = { run, agent, plain }
      byUnit.set(route.unitId, made)
      return made
    },
    forget,
    sweep() {
      nowMs = monotonicMs()
      for (const [unitId, { agent, plain }] of byUnit) {
        const isUsed = Object.keys(agent.sockets).length + Object.keys(agent.freeSockets).length > 0
        if (!plain.sweep() && !isUsed) byUnit.delete(unitId)
      }
    },
    close() {
      for (const unitId of byUnit.keys()) forget(unitId)
    },
  }
}
