// The heartbeat records when the service was last healthy: the engine answered, and the database stored that. A unit
// that is later found dead is billed up to then (design 8). Time without a heartbeat does not count as idle time,
// since no unit could be used, or no use could be recorded.

import type { App } from '../../app.ts'
import { isEngineError } from '../../engine/errors.ts'
import { SECOND } from '../../lib/clock.ts'
import { TOLERATED_JUMP_MS } from '../../lib/service-clock.ts'
import { type Heartbeat, lockHeartbeat, saveHeartbeat } from '../../store/heartbeats.ts'
import { isOutage } from '../../store/outage.ts'
import { inTransaction } from '../transactions/transactions.ts'
import { putOffSleep } from '../../store/windows.ts'

/** After an outage, callers that were refused have this long to come back before a unit sleeps. */
const GRACE_MS = 30 * SECOND

/** From now until the next heartbeat no unit is put to sleep. */
export function noteOutage({ outage }: App): void {
  outage.isOn = true
}

/** Call it when the service's own work fails: calls at that time would fail in the same way. */
export function noteFailure(app: App, error: unknown): void {
  const isEngineOut = isEngineError(error, 'engine_away') || isEngineError(error, 'timeout')
  if (isEngineOut || isOutage(error)) noteOutage(app)
}

/** `seenMs`: when the engine answered, in monotonic time. Ends an outage. */
export async function recordHeartbeat(app: App, { seenMs }: { seenMs: number }): Promise<void> {
  const { clock, db, outage } = app
  const noted = await inTransaction({ db, clock }, async (transaction) => {
    const last = await lockHeartbeat(transaction)
    const now = clock.now()
    const at = new Date(now.getTime() - Math.ceil(clock.monotonicMs() - seenMs))
    const beat: Heartbeat = { at, boot: clock.boot, offsetMs: clock.offsetMs() }
    // Another process already uses the new time; this one follows soon.
    if (last && last.boot === beat.boot && !haveSameOffset(last, beat)) return false
    if (last && outage.isOn) {
      const awayMs = Math.max(0, now.getTime() - last.at.getTime())
      await putOffSleep(transaction, { now, byMs: awayMs, graceMs: GRACE_MS })
    }
    await saveHeartbeat(transaction, beat)
    return true
  })
  if (noted) outage.isOn = false
}

/** For two heartbeats of the same boot. */
export function haveSameOffset(
  one: Pick<Heartbeat, 'offsetMs'>,
  other: Pick<Heartbeat, 'offsetMs'>,
): boolean {
  return Math.abs(one.offsetMs - other.offsetMs) <= TOLERATED_JUMP_MS
}
