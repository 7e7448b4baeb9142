// Visits under way, as the gateway tells of them: a unit in which one is under way is in use, as with a command, so
// it neither falls asleep nor is put to sleep in its middle. A gateway that has gone silent has no visits.

import type { App } from '../../app.ts'
import { SECOND } from '../../lib/clock.ts'
import { touchUnits } from '../../store/units.ts'
import { countUse } from './use.ts'

/** Well above how often a gateway with visits tells of them. */
const SILENT_FOR_MS = 20 * SECOND

export type Visits = {
  /**
   * `open`: all units with a visit under way, in place of those told before. `used`: those whose use is to be
   * recorded. Answers which of the latter run.
   */
  tell(told: { open: string[]; used: string[] }): Promise<Set<string>>
  /** There is no gateway any more. */
  end(): void
}

export function createVisits(app: App): Visits {
  let open = new Set<string>()
  let silence = new AbortController()

  const replace = (by: Set<string>) => {
    for (const id of by) if (!open.has(id)) countUse(app, id, 1)
    for (const id of open) if (!by.has(id)) countUse(app, id, -1)
    open = by
  }
  const end = () => {
    silence.abort()
    replace(new Set())
  }

  return {
    async tell(told) {
      silence.abort()
      silence = new AbortController()
      // Counted before it is recorded, like any use (use.ts).
      replace(new Set(told.open))
      app.clock.sleep(SILENT_FOR_MS, silence.signal).then(end, () => {})
      if (told.used.length === 0) return new Set()
      return await app.clock.steadily(() => touchUnits(app.db, { ids: told.used, usedAt: app.clock.now() }))
    },
    end,
  }
}
