// The heartbeat of a host records when it was last healthy: its engine answered, and the database stored that. A unit
// that is later found dead is billed up to then (design 8). Time without a heartbeat does not count as idle time,
// since no unit of the host could be used, or no use could be recorded.

import type { App } from '../../app.ts'
import { isEngineError } from '../../engine/errors.ts'
import type { FleetHost } from '../../engine/fleet.ts'
import { SECOND } from '../../lib/clock.ts'
import { TOLERATED_JUMP_MS } from '../../lib/service-clock.ts'
import {
  findHeartbeat,
  type Heartbeat,
  lockHeartbeat,
  saveHeartbeat,
  SERVICE,
} from '../../store/heartbeats.ts'
import { isOutage } from '../../store/outage.ts'
import { inTransaction } from '../transactions/transactions.ts'
import { putOffSleep } from '../../store/windows.ts'

/** After an outage, callers that were refused have this long to come back before a unit sleeps. */
const GRACE_MS = 30 * SECOND

/** From now until its next heartbeat no unit of the host is put to sleep. */
export function noteOutage({ outages }: App, host: Pick<FleetHost, 'id'>): void {
  outages.add(host.id)
}

/** Of all hosts. */
export function noteOutages(app: App): void {
  for (const host of app.fleet.hosts()) noteOutage(app, host)
}

/** Call it when the service's own work fails: calls at that time would fail in the same way. */
export function noteFailure(app: App, error: unknown): void {
  if (isOutOfReach(error)) noteOutages(app)
}

/** The same for work on one host. */
export function noteFailureOf(app: App, host: FleetHost, error: unknown): void {
  if (isOutage(error)) noteOutages(app)
  else if (isOutOfReach(error)) noteOutage(app, host)
}

function isOutOfReach(error: unknown): boolean {
  return isEngineError(error, 'engine_away') || isEngineError(error, 'timeout') || isOutage(error)
}

/** `seenMs`: when the engine answered, in monotonic time. Ends an outage. */
export async function recordHeartbeat(
  app: App,
  { id: hostId }: Pick<FleetHost, 'id'>,
  { seenMs }: { seenMs: number },
): Promise<void> {
  const { clock, db, outages } = app
  const noted = await inTransaction({ db, clock }, async (transaction) => {
    const service = await lockHeartbeat(transaction)
    const now = clock.now()
    const at = new Date(now.getTime() - Math.ceil(clock.monotonicMs() - seenMs))
    const beat: Heartbeat = { at, boot: clock.boot, offsetMs: clock.offsetMs() }
    // Another process already uses the new time; this one follows soon.
    if (service && service.boot === beat.boot && !haveSameOffset(service, beat)) return false
    const last = outages.has(hostId) ? await findHeartbeat(transaction, hostId) : null
    if (last) {
      const awayMs = Math.max(0, now.getTime() - last.at.getTime())
      await putOffSleep(transaction, { hostId, now, byMs: awayMs, graceMs: GRACE_MS })
    }
    await saveHeartbeat(transaction, [SERVICE, hostId], beat)
    return true
  })
  if (noted) outages.delete(hostId)
}

/** For two heartbeats of the same boot. */
export function haveSameOffset(
  one: Pick<Heartbeat, 'offsetMs'>,
  other: Pick<Heartbeat, 'offsetMs'>,
): boolean {
  return Math.abs(one.offsetMs - other.offsetMs) <= TOLERATED_JUMP_MS
}
