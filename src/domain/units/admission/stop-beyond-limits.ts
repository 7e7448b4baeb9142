// The background job of limits (spec 3, design 4): units that a daily cap, the team's credits or a lowered
// concurrency no longer allow are stopped at once. They then sleep, and can wake once the limit allows it.

import type { App } from '../../../app.ts'
import { listUnitsBeyondLimits, listUnitsWithinLimits } from '../../../store/spending.ts'
import { RESERVED_MS } from '../../billing/spending-limits.ts'
import { sizeNanoCentsPerHour } from '../../billing/prices.ts'
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

function logFailure(app: App, unitId: string): (error: unknown) => void {
  return (error) => app.log.warn({ err: error, unitId }, 'unit beyond a limit did not stop; will be retried')
}
