// After a frozen unit is thawed and its visitor served, two statements pass until its row says that it runs (decision
// 63). Reads of the unit wait for them, so that a client that already has an answer from the unit is not told that it
// sleeps or starts.

import type { App } from '../../../app.ts'
import { SECOND } from '../../../lib/clock.ts'
import { completesWithin } from '../../../lib/concurrency/completes-within.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'

/** Usually some milliseconds. If the database is slow, the unit is shown as its row says. */
const LONGEST_MS = SECOND

/** Call it when the machine is thawed; it lasts until the wake has ended, whether it succeeded or failed. */
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

/** Waits for the wake of one unit, or of all units of the team. */
export async function untilWritten(app: App, { teamId, id }: { teamId: string; id?: string }): Promise<void> {
  if (app.unwrittenWakes.size === 0) return
  const wanted = [...app.unwrittenWakes].filter(
    ([unitId, wake]) => wake.teamId === teamId && (id ?? unitId) === unitId,
  )
  if (wanted.length > 0)
    await completesWithin(app.clock, LONGEST_MS, Promise.all(wanted.map(([, { written }]) => written)))
}
