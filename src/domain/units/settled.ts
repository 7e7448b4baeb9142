// Waiting for a unit: operations that arrive while something is under way with it wait, bounded, and then
// act or are refused (design 4).

import type { App } from '../../app.ts'
import { isPassing } from '../../contract/states.ts'
import { SECOND } from '../../lib/clock.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import type { Caller } from '../credentials/caller.ts'
import { getRecord } from './get.ts'
import { findWalk } from './way.ts'

// What this process does itself is waited for, what another does is asked for.
const WAIT_MS = 30 * SECOND
const POLL_MS = { first: 10, most: 250 }

/** The unit once nothing is under way with it, or as it is when waiting has taken too long. */
export async function getSettledUnit(
  app: App,
  caller: Caller,
  id: string,
  waitMs = WAIT_MS,
): Promise<UnitRecord> {
  const deadlineMs = app.clock.monotonicMs() + waitMs
  let pauseMs = POLL_MS.first
  for (;;) {
    const unit = await getRecord(app, caller, id)
    if (!isPassing(unit.state) || app.clock.monotonicMs() >= deadlineMs) return unit
    const underWay = findWalk(app, unit)
    if (underWay) await atMost(app, deadlineMs - app.clock.monotonicMs(), underWay)
    else await app.clock.sleep(pauseMs)
    pauseMs = Math.min(2 * pauseMs, POLL_MS.most)
  }
}

/** Until the work has ended, however it does, or the time is up. */
async function atMost(app: App, ms: number, work: Promise<void>): Promise<void> {
  const done = new AbortController()
  const ended = work.then(
    () => {},
    () => {},
  )
  await Promise.race([ended, app.clock.sleep(ms, done.signal).catch(() => {})])
  done.abort()
}
