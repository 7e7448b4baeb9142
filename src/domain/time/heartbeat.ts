// The heartbeat of a host records when it was last healthy: its engine answered, and the database stored that. A unit
// that is later found dead is billed up to then (design 8). Time without a heartbeat does not count as idle time,
// since no unit of the host could be used, or no use could be recorded.

import type { App } from '../../app.ts'
import { isEngineError } from '../../engine/errors.ts'
import type { FleetHost } from '../../engine/fleet.ts'
import { SECOND } from '../../lib/clock.ts'
import { batched } from '../../lib/concurrency/batch.ts'
import { TOLERATED_JUMP_MS } from '../../lib/service-clock.ts'
import {
  findHeartbeat,
  type Heartbeat,
  lockHeartbeat,
  saveHeartbeats,
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

type Seen = { hostId: string; seenMs: number }

/** One for each service, which its outages stand for: an App may be copied, and they are not. */
const recorders = new WeakMap<App['outages'], (seen: Seen) => Promise<unknown>>()

/** `seenMs`: when the engine answered, in monotonic time. Ends an outage. */
export async function recordHeartbeat(
  app: App,
  { id: hostId }: Pick<FleetHost, 'id'>,
  { seenMs }: { seenMs: number },
): Promise<void> {
  const record =
    recorders.get(app.outages) ?? batched(async (seen: Seen[]) => await recordHeartbeats(app, seen))
  recorders.set(app.outages, record)
  await record({ hostId, seenMs })
}

/**
 * Of several hosts in one transaction: each would wait for the row of the service, and two hundred of them would keep all
 * connections from the calls.
 */
async function recordHeartbeats({ clock, db, outages }: App, all: Seen[]): Promise<void[]> {
  const seen = new Map(all.map(({ hostId, seenMs }) => [hostId, seenMs]))
  const noted = await inTransaction({ db, clock }, async (transaction) => {
    const service = await lockHeartbeat(transaction)
    const now = clock.now()
    const time = { boot: clock.boot, offsetMs: clock.offsetMs() }
    // Another process already uses the new time; this one follows soon.
    if (service && service.boot === time.boot && !haveSameOffset(service, time)) return false
    const atOf = (seenMs: number) => new Date(now.getTime() - Math.ceil(clock.monotonicMs() - seenMs))
    for (const hostId of [...seen.keys()].filter((id) => outages.has(id))) {
      const last = await findHeartbeat(transaction, hostId)
      const awayMs = Math.max(0, now.getTime() - (last?.at ?? now).getTime())
      if (last) await putOffSleep(transaction, { hostId, now, byMs: awayMs, graceMs: GRACE_MS })
    }
    const beats = [...seen].map(([id, seenMs]) => ({ id, at: atOf(seenMs) }))
    const newest = atOf(Math.max(...seen.values()))
    await saveHeartbeats(transaction, [...beats, { id: SERVICE, at: newest }], time)
    return true
  })
  if (noted) for (const hostId of seen.keys()) outages.delete(hostId)
  return all.map(() => {})
}

/** For two heartbeats of the same boot. */
export function haveSameOffset(
  one: Pick<Heartbeat, 'offsetMs'>,
  other: Pick<Heartbeat, 'offsetMs'>,
): boolean {
  return Math.abs(one.offsetMs - other.offsetMs) <= TOLERATED_JUMP_MS
}
