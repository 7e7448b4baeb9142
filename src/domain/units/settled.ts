// Waiting for a unit: operations that arrive while something is under way with it wait, bounded, and then
// act or are refused (design 4).

import type { App } from '../../app.ts'
import { isPassing } from '../../contract/states.ts'
import { SECOND } from '../../lib/clock.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import type { Caller } from '../credentials/caller.ts'
import { getRecord } from './get.ts'

const WAIT_MS = 30 * SECOND
const POLL_MS = { first: 10, most: 250 }

/** The unit once nothing is under way with it, or as it is when waiting has taken too long. */
export async function getSettledUnit(app: App, caller: Caller, id: string): Promise<UnitRecord> {
  const deadlineMs = app.clock.monotonicMs() + WAIT_MS
  let pauseMs = POLL_MS.first
  for (;;) {
    const unit = await getRecord(app, caller, id)
    if (!isPassing(unit.state) || app.clock.monotonicMs() >= deadlineMs) return unit
    await app.clock.sleep(pauseMs)
    pauseMs = Math.min(2 * pauseMs, POLL_MS.most)
  }
}
