// The service's heartbeat tells when it was last whole: its engine answered for its machines, and the
// database wrote that down. What is found dead later is billed up to then (design 8). While it was not whole
// nobody could use a unit, or no use could be recorded, so that time is nobody's idle time.

import type { App } from '../../app.ts'
import { isEngineError } from '../../engine/errors.ts'
import { SECOND } from '../../lib/clock.ts'
import { TOLERATED_JUMP_MS } from '../../lib/service-clock.ts'
import { type Heartbeat, lockHeartbeat, saveHeartbeat } from '../../store/heartbeats.ts'
import { isOutage } from '../../store/outage.ts'
import { inTransaction } from '../transactions/transactions.ts'
import { putOffSleep } from '../../store/windows.ts'

/** Whoever was refused during an outage has this long to come again before a unit sleeps. */
const GRACE_MS = 30 * SECOND

/** From here to the next heartbeat nobody is put to sleep. */
export function noteOutage({ outage }: App): void {
  outage.isOn = true
}

/** For what the service fails to do by itself: whoever calls meanwhile fares no better. */
export function noteFailure(app: App, error: unknown): void {
  const isEngineOut = isEngineError(error, 'engine_away') || isEngineError(error, 'timeout')
  if (isEngineOut || isOutage(error)) noteOutage(app)
}

/** `seenMs`, by the monotonic clock: when the engine answered. Ends an outage. */
export async function recordHeartbeat(app: App, { seenMs }: { seenMs: number }): Promise<void> {
  const { clock, db, outage } = app
  const noted = await inTransaction({ db, clock }, async (transaction) => {
    const last = await lockHeartbeat(transaction)
    const now = clock.now()
    const at = new Date(now.getTime() - Math.ceil(clock.monotonicMs() - seenMs))
    const beat: Heartbeat = { at, boot: clock.boot, offsetMs: clock.offsetMs() }
    // Another process goes by the new time already; this one is about to follow.
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

/** Of two heartbeats of one boot. */
export function haveSameOffset(
  one: Pick<Heartbeat, 'offsetMs'>,
  other: Pick<Heartbeat, 'offsetMs'>,
): boolean {
  return Math.abs(one.offsetMs - other.offsetMs) <= TOLERATED_JUMP_MS
}
