// Connections to units, kept between two requests. Each belongs to one run of one unit and one of its ports: a
// request never uses a connection that was opened for another unit (reliability I10), and unexpected bytes on one
// only reach the unit's own visitors.

import { Agent } from 'node:http'
import type { Route } from '../routing/route.ts'

/** Shorter than the five seconds after which many servers close, so that few requests meet a closing connection. */
const IDLE_MS = 4000
const MAX_IDLE = 64
const KEEP_ALIVE_PROBE_MS = 30_000

export type UnitConnections = {
  agentFor(route: Route): Agent
  /** Ends all connections to a unit, including those in use. */
  forget(unitId: string): void
  /** Drops units without visits. */
  sweep(): void
  close(): void
}

type Kept = { run: string; agent: Agent }

export function createUnitConnections(): UnitConnections {
  const byUnit = new Map<string, Kept>()
  const forget = (unitId: string) => {
    byUnit.get(unitId)?.agent.destroy()
    byUnit.delete(unitId)
  }
  return {
    agentFor(route) {
      // The key needs no port: an agent keeps the ports of an address apart.
      const run = `${route.generation} ${route.address}`
      const kept = byUnit.get(route.unitId)
      if (kept?.run === run) return kept.agent
      forget(route.unitId)
      const agent = new Agent({
        keepAlive: true,
        keepAliveMsecs: KEEP_ALIVE_PROBE_MS,
        scheduling: 'lifo',
        maxFreeSockets: MAX_IDLE,
        timeout: IDLE_MS,
      })
      byUnit.set(route.unitId, { run, agent })
      return agent
    },
    forget,
    sweep() {
      for (const [unitId, { agent }] of byUnit) {
        const isUsed = Object.keys(agent.sockets).length + Object.keys(agent.freeSockets).length > 0
        if (!isUsed) byUnit.delete(unitId)
      }
    },
    close() {
      for (const unitId of byUnit.keys()) forget(unitId)
    },
  }
}
