// Waits for a unit to reach a stable state: calls that arrive during an operation wait for a bounded time, and then
// proceed or are refused (design 4). All waiters of a unit share one query.

import type { App } from '../../../app.ts'
import { unavailable } from '../../../contract/errors.ts'
import { isTransitional } from '../../../contract/states.ts'
import { logLimitReached } from '../../../lib/limit-reached.ts'
import { SECOND } from '../../../lib/clock.ts'
import { completesWithin } from '../../../lib/concurrency/completes-within.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { isUnchanged } from '../../../store/units.ts'
import type { Caller } from '../../credentials/caller.ts'
import { getRecord } from '../get.ts'
import { findOperation } from './operation.ts'

const WAIT_MS = 30 * SECOND
const POLL_MS = { first: 10, most: 250 }

/**
 * Returns the unit once it is in a stable state, or as it is when the wait has timed out. `creatingMs` limits the
 * wait for a unit being created, which may take as long as pulling its image.
 */
export async function waitUntilStable(
  app: App,
  caller: Caller,
  id: string,
  waitMs = WAIT_MS,
  creatingMs = waitMs,
): Promise<UnitRecord> {
  const startedMs = app.clock.monotonicMs()
  for (;;) {
    const unit = await readCoalesced(app, caller, id)
    const mostMs = unit.state === 'creating' ? Math.min(creatingMs, waitMs) : waitMs
    const leftMs = startedMs + mostMs - app.clock.monotonicMs()
    if (!isTransitional(unit.state) || leftMs <= 0) return unit
    await withWaiterLimit(app, unit, () => completesWithin(app.clock, leftMs, waitForChange(app, unit)))
  }
}

async function readCoalesced(app: App, caller: Caller, id: string): Promise<UnitRecord> {
  return await app.activity.reads.run(`${caller.teamId} ${id}`, () => getRecord(app, caller, id))
}

/**
 * Resolves when the unit is in another state, or its operation has ended. An operation of this process is awaited;
 * one of another process is polled.
 */
export async function waitForChange(app: App, unit: UnitRecord): Promise<void> {
  const underWay = findOperation(app, unit)
  if (underWay) return await underWay.catch(() => {})
  await app.activity.operations.run(`${unit.id} ${unit.revision} elsewhere`, WAIT_MS, async () => {
    const deadlineMs = app.clock.monotonicMs() + WAIT_MS
    for (let pauseMs = POLL_MS.first; app.clock.monotonicMs() < deadlineMs; pauseMs *= 2) {
      await app.clock.sleep(Math.min(pauseMs, POLL_MS.most))
      if (!(await isUnchanged(app.db, unit)) || findOperation(app, unit)) return
    }
  })
}

/** How many calls may wait for one unit. Each holds a connection and its body. */
const MAX_WAITERS = 1000
const RETRY_AFTER_S = 2

/** Runs the wait as one of the unit's waiters. Throws `unavailable` if there are too many. */
export async function withWaiterLimit<T>(
  app: App,
  { id, teamId }: UnitRecord,
  wait: () => Promise<T>,
): Promise<T> {
  const { waiters } = app.activity
  if (waiters.of(id) >= MAX_WAITERS) {
    logLimitReached(app, { bound: 'calls that wait for one unit', by: teamId })
    throw unavailable(`Too many calls wait for this unit; try again in ${RETRY_AFTER_S} s.`, RETRY_AFTER_S)
  }
  const endWait = waiters.begin(id)
  try {
    return await wait()
  } finally {
    endWait()
  }
}
