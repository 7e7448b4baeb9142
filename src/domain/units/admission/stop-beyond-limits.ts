// The background job of limits (spec 3, design 4): units that a daily cap, the team's credits or a lowered
// concurrency no longer allow are stopped at once. They then sleep, and can wake once the limit allows it.

import type { App } from '../../../app.ts'
import { quotaExceeded } from '../../../contract/errors.ts'
import { listUnitsBeyondLimits, listUnitsWithinLimits } from '../../../store/spending.ts'
import { RESERVED_MS } from '../../billing/spending-limits.ts'
import { sizeNanoCentsPerHour } from '../../billing/prices.ts'
import type { Caller } from '../../credentials/caller.ts'
import { getRecord } from '../get.ts'
import { stopOperation } from '../stop.ts'
import { transition } from '../lifecycle/transition.ts'
import { runOperation } from '../lifecycle/operation.ts'

/** One run of the background job. Reads what is due from the store, so it may run twice at once. */
export async function enforceLimits(app: App): Promise<void> {
  const moment = () => ({ now: app.clock.now(), sizePrices: sizeNanoCentsPerHour, reservedMs: RESERVED_MS })
  // The service time must not jump between reading it and comparing it with stored times.
  const beyond = await app.clock.withStableTime(() => listUnitsBeyondLimits(app.db, moment()))
  await Promise.all(
    beyond.map(async ({ unit, reason }) => {
      const stopping = await transition(app, unit, reason)
      // Not awaited: one machine that is slow to stop must not let others go on spending.
      if (stopping) void runOperation(app, stopping, stopOperation).catch(logFailure(app, unit.id))
    }),
  )
  const within = await app.clock.withStableTime(() => listUnitsWithinLimits(app.db, moment()))
  await Promise.all(within.map((unit) => transition(app, unit, 'limitCleared')))
}

/**
 * After a policy was made narrower: what it no longer allows stops now, not at the job's next run. Never throws, since
 * the change itself is done.
 */
export async function enforceNow(app: App): Promise<void> {
  try {
    await enforceLimits(app)
  } catch (error) {
    app.log.warn({ err: error }, 'limits could not be enforced at once; the background job will')
  }
}

/** Throws `quota_exceeded` for a unit that a limit of its credential stops or has stopped. */
export async function refuseStoppedByLimit(app: App, caller: Caller, id: string): Promise<void> {
  const { state, stoppedReason, name } = await getRecord(app, caller, id)
  if (stoppedReason !== 'cap' || (state !== 'stopping' && state !== 'stopped')) return
  throw quotaExceeded(
    `The unit ${name} was stopped, because the policy allows no more; have the policy changed, or stop another unit.`,
    { field: 'policy' },
  )
}

function logFailure(app: App, unitId: string): (error: unknown) => void {
  return (error) => app.log.warn({ err: error, unitId }, 'unit beyond a limit did not stop; will be retried')
}
