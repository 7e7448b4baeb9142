// The visits in progress, as gateways report them. A unit with a visit in progress is in use, as with a command, so it
// is not put to sleep. Each gateway has a list of its own, also each of several on one host; one that stopped reporting
// has no visits.

import { type Clock, SECOND } from '../../../lib/clock.ts'
import type { Counts } from './counts.ts'

/** Much longer than the interval between a gateway's reports. */
const SILENT_FOR_MS = 20 * SECOND

/** `worker`: its number among the gateways of its host. */
export type ReportingGateway = { hostId: string; worker: number }

export type Sessions = {
  /** Replaces a gateway's units with visits in progress, and the endpoints that these are at, as far as known. */
  tell(gateway: ReportingGateway, unitIds: string[], endpoints?: Record<string, string[]>): void
  /** The gateways of this host have no visits any more. */
  end(hostId: string): void
  /** The endpoints of the unit with visits in progress; empty if none were reported. */
  endpointsOf(unitId: string): string[]
}

type Told = {
  hostId: string
  /** By the unit's id, what ends its use. */
  visited: Map<string, () => void>
  endpoints: Map<string, string[]>
  silence: AbortController
}

export function createSessions({ clock, uses }: { clock: Clock; uses: Counts }): Sessions {
  const byGateway = new Map<string, Told>()

  const end = (gateway: string) => {
    const told = byGateway.get(gateway)
    byGateway.delete(gateway)
    told?.silence.abort()
    for (const endUse of told?.visited.values() ?? []) endUse()
  }

  return {
    tell({ hostId, worker }, unitIds, endpoints = {}) {
      const gateway = `${hostId} ${worker}`
      const before = byGateway.get(gateway)?.visited ?? new Map<string, () => void>()
      byGateway.get(gateway)?.silence.abort()
      const visited = new Map([...new Set(unitIds)].map((id) => [id, before.get(id) ?? uses.begin(id)]))
      for (const [id, endUse] of before) if (!visited.has(id)) endUse()
      const silence = new AbortController()
      if (visited.size === 0) return void byGateway.delete(gateway)
      byGateway.set(gateway, { hostId, visited, endpoints: new Map(Object.entries(endpoints)), silence })
      clock.sleep(SILENT_FOR_MS, silence.signal).then(
        () => end(gateway),
        () => {},
      )
    },
    end(hostId) {
      for (const [gateway, told] of byGateway) if (told.hostId === hostId) end(gateway)
    },
    endpointsOf: (unitId) => [
      ...new Set([...byGateway.values()].flatMap(({ endpoints }) => endpoints.get(unitId) ?? [])),
    ],
  }
}
