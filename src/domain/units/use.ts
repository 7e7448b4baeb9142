// What counts as use moves `sleepsAt` (design 4): an exec for as long as it runs, a file read or written, a
// start, packets from siblings. Reading about a unit does not.

import type { App } from '../../app.ts'
import { MINUTE, SECOND } from '../../lib/clock.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { touchUnit } from '../../store/units.ts'

/** False: the unit is not running any more. */
export async function recordUse(app: App, unit: UnitRecord): Promise<boolean> {
  return await app.clock.steadily(() => touchUnit(app.db, { unit, usedAt: app.clock.now() }))
}

/** The shortest window is a minute, so a use that is renewed this often never looks idle. */
const RENEW_EVERY_MS = MINUTE / 3
/** A use shorter than this is covered by the record made when it began. */
const SHORT_MS = SECOND

/** Keeps the unit in use while the work goes on. The use was recorded when the caller got the unit. */
export async function whileInUse<T>(app: App, unit: UnitRecord, work: () => Promise<T>): Promise<T> {
  const done = new AbortController()
  const startedMs = app.clock.monotonicMs()
  const renewing = renew(app, unit, done.signal)
  count(app, unit, 1)
  try {
    return await work()
  } finally {
    count(app, unit, -1)
    done.abort()
    await renewing
    if (app.clock.monotonicMs() - startedMs > SHORT_MS) await recordUse(app, unit).catch(logFailure(app))
  }
}

function count({ uses }: App, { id }: UnitRecord, change: 1 | -1): void {
  const now = (uses.get(id) ?? 0) + change
  if (now === 0) uses.delete(id)
  else uses.set(id, now)
}

async function renew(app: App, unit: UnitRecord, done: AbortSignal): Promise<void> {
  for (;;) {
    await app.clock.sleep(RENEW_EVERY_MS, done).catch(() => {})
    if (done.aborted) return
    await recordUse(app, unit).catch(logFailure(app))
  }
}

/** A use that cannot be recorded must not fail the use itself. */
function logFailure(app: App): (error: unknown) => void {
  return (error) => app.log.warn({ err: error }, 'a use was not recorded')
}
