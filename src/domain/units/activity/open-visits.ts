// The visits in progress, as the gateway reports them. A unit with a visit in progress is in use, as with a command,
// so it is not put to sleep. A gateway that stopped reporting has no visits.

import type { App } from '../../../app.ts'
import { SECOND } from '../../../lib/clock.ts'
import { countUse } from './record-use.ts'

/** Much longer than the interval between a gateway's reports. */
const SILENT_FOR_MS = 20 * SECOND

export type Visits = {
  /** Replaces the units with visits in progress. */
  tell(unitIds: string[], endpoints?: Record<string, string[]>): void
  /** The gateway is disconnected. */
  end(): void
}

export function createVisits(app: App): Visits {
  let visited = new Set<string>()
  let silence = new AbortController()

  const replace = (by: Set<string>) => {
    silence.abort()
    for (const id of by) if (!visited.has(id)) countUse(app, id, 1)
    for (const id of visited) if (!by.has(id)) countUse(app, id, -1)
    visited = by
    app.sessionEndpoints.clear()
  }
  const end = () => replace(new Set())

  return {
    tell(unitIds, endpoints = {}) {
      replace(new Set(unitIds))
      for (const [unitId, endpointIds] of Object.entries(endpoints))
        app.sessionEndpoints.set(unitId, endpointIds)
      silence = new AbortController()
      if (visited.size > 0) app.clock.sleep(SILENT_FOR_MS, silence.signal).then(end, () => {})
    },
    end,
  }
}
