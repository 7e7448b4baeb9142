// The visits in progress, as the gateway reports them. A unit with a visit in progress is in use, as with a command,
// so it is not put to sleep. A gateway that stopped reporting has no visits.

import { type Clock, SECOND } from '../../../lib/clock.ts'
import type { Counts } from './counts.ts'

/** Much longer than the interval between a gateway's reports. */
const SILENT_FOR_MS = 20 * SECOND

export type Sessions = {
  /** Replaces the units with visits in progress, and the endpoints that these are at, as far as known. */
  tell(unitIds: string[], endpoints?: Record<string, string[]>): void
  /** The gateway is disconnected. */
  end(): void
  /** The endpoints of the unit with visits in progress; empty if none were reported. */
  endpointsOf(unitId: string): string[]
}

export function createSessions({ clock, uses }: { clock: Clock; uses: Counts }): Sessions {
  /** By the unit's id, what ends its use. */
  let visited = new Map<string, () => void>()
  let endpointsByUnit = new Map<string, string[]>()
  let silence = new AbortController()

  const replace = (by: Set<string>, endpoints: Record<string, string[]>) => {
    silence.abort()
    const before = visited
    visited = new Map([...by].map((id) => [id, before.get(id) ?? uses.begin(id)]))
    for (const [id, endUse] of before) if (!by.has(id)) endUse()
    endpointsByUnit = new Map(Object.entries(endpoints))
  }
  const end = () => replace(new Set(), {})

  return {
    tell(unitIds, endpoints = {}) {
      replace(new Set(unitIds), endpoints)
      silence = new AbortController()
      if (visited.size > 0) clock.sleep(SILENT_FOR_MS, silence.signal).then(end, () => {})
    },
    end,
    endpointsOf: (unitId) => endpointsByUnit.get(unitId) ?? [],
  }
}
