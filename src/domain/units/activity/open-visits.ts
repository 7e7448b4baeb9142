// Visits under way, as the gateway tells of them: a unit in which one is under way is in use, as with a command, so
// it is not put to sleep in its middle. A gateway that has gone silent has no visits.

import type { App } from '../../../app.ts'
import { SECOND } from '../../../lib/clock.ts'
import { countUse } from './record-use.ts'

/** Well above how often a gateway with visits tells of them. */
const SILENT_FOR_MS = 20 * SECOND

export type Visits = {
  /** All units with visits under way, in place of those told before. */
  tell(unitIds: string[], endpoints?: Record<string, string[]>): void
  /** There is no gateway any more. */
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
