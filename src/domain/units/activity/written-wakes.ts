// Between the moment at which a frozen unit goes on, when its visitor is served, and the one at which its row says that it
// runs lie two statements (decision 63). Whoever looks at it meanwhile waits for them, so that nobody who has had an
// answer of the unit is told that it sleeps or starts.

import type { App } from '../../../app.ts'
import { SECOND } from '../../../lib/clock.ts'
import { completesWithin } from '../../../lib/concurrency/completes-within.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'

/** Mostly some milliseconds. Where the database is slow the unit is shown as its row is. */
const LONGEST_MS = SECOND

/** From when the machine goes on until what was begun with it has ended, well or not. */
export function noteUnwrittenWake(app: App, { id, teamId }: UnitRecord, wake: Promise<unknown>): void {
  const written = wake.then(
    () => {},
    () => {},
  )
  const entry = { teamId, written }
  app.unwrittenWakes.set(id, entry)
  void written.then(() => {
    if (app.unwrittenWakes.get(id) === entry) app.unwrittenWakes.delete(id)
  })
}

/** Of one unit, or of all of the team. */
export async function untilWritten(app: App, { teamId, id }: { teamId: string; id?: string }): Promise<void> {
  if (app.unwrittenWakes.size === 0) return
  const wanted = [...app.unwrittenWakes].filter(
    ([unitId, wake]) => wake.teamId === teamId && (id ?? unitId) === unitId,
  )
  if (wanted.length > 0)
    await completesWithin(app.clock, LONGEST_MS, Promise.all(wanted.map(([, { written }]) => written)))
}
