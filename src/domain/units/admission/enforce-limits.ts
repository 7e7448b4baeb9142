// The loop of limits (spec 3, design 4): units that a daily cap, the team's credits or a lowered concurrency no longer
// allow are stopped at once. When the limit has cleared they are asleep, and wake on their next use.

import type { App } from '../../../app.ts'
import { listUnitsBeyondLimits, listUnitsWithinLimits } from '../../../store/spending.ts'
import { RESERVED_MS } from '../../billing/spending-limits.ts'
import { sizeNanoCentsPerHour } from '../../billing/prices.ts'
import { stopOperation } from '../stop.ts'
import { transition } from '../lifecycle/transition.ts'
import { runOperation } from '../lifecycle/operation.ts'

/** A loop's round. Reads what is due from the store, so it may run twice and in two processes. */
export async function enforceLimits(app: App): Promise<void> {
  const moment = () => ({ now: app.clock.now(), sizePrices: sizeNanoCentsPerHour, reservedMs: RESERVED_MS })
  // The time must not change over between what it is and what it is compared with.
  const beyond = await app.clock.withStableTime(() => listUnitsBeyondLimits(app.db, moment()))
  await Promise.all(
    beyond.map(async ({ unit, reason }) => {
      const stopping = await transition(app, unit, reason)
      // Not waited for: one machine that is slow to stop must not let others spend on.
      if (stopping) void runOperation(app, stopping, stopOperation).catch(logFailure(app, unit.id))
    }),
  )
  const within = await app.clock.withStableTime(() => listUnitsWithinLimits(app.db, moment()))
  await Promise.all(within.map((unit) => transition(app, unit, 'limitCleared')))
}

function logFailure(app: App, unitId: string): (error: unknown) => void {
  return (error) => app.log.warn({ err: error, unitId }, 'a unit beyond a limit did not stop at once')
}
