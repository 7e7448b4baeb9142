// What counts as use moves `sleepsAt` (design 4): an exec for as long as it runs, a file read or written, a
// start, a visit, packets from siblings. Reading about a unit does not.

import type { App } from '../../../app.ts'
import { MINUTE, SECOND } from '../../../lib/clock.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { touchUnit, touchUnits } from '../../../store/units.ts'

/** False: the unit is not running any more. Uses that come while one is being recorded are recorded together. */
export async function recordUse(app: App, { id, sleepsTogether }: UnitRecord): Promise<boolean> {
  const touch = async (usedAt: Date) =>
    sleepsTogether
      ? (await touchUnits(app.db, { ids: [id], usedAt })).has(id)
      : await touchUnit(app.db, { id, usedAt })
  return await app.coalescedUseWrites.run(id, () => app.clock.withStableTime(() => touch(app.clock.now())))
}

/** Answers which of them run. */
export async function recordUses(app: App, ids: string[]): Promise<Set<string>> {
  return await app.clock.withStableTime(() => touchUnits(app.db, { ids, usedAt: app.clock.now() }))
}

/** The shortest window is a minute, so a use that is renewed this often never looks idle. */
const RENEW_EVERY_MS = MINUTE / 3
/** A use shorter than this is covered by the record made when it began. */
const SHORT_MS = SECOND

/** Does the work as a use of the unit, which lasts as long. Null: the unit is not running, and nothing was done. */
export async function whileInUse<T>(
  app: App,
  unit: UnitRecord,
  work: () => Promise<T>,
): Promise<{ result: T } | null> {
  // Counted before it is recorded: whoever puts the unit to sleep sees the one or the other (sleep.ts).
  countUse(app, unit.id, 1)
  try {
    return (await recordUse(app, unit)) ? { result: await renewing(app, unit, work) } : null
  } finally {
    countUse(app, unit.id, -1)
  }
}

async function renewing<T>(app: App, unit: UnitRecord, work: () => Promise<T>): Promise<T> {
  const done = new AbortController()
  const startedMs = app.clock.monotonicMs()
  const renewed = renew(app, unit, done.signal)
  try {
    return await work()
  } finally {
    done.abort()
    await renewed
    if (app.clock.monotonicMs() - startedMs > SHORT_MS) await recordUse(app, unit).catch(logFailure(app))
  }
}

/** A use that goes on keeps the unit awake, whether it can be recorded or not (idle.ts). */
export function countUse({ usesPerUnit }: App, id: string, change: 1 | -1): void {
  const now = (usesPerUnit.get(id) ?? 0) + change
  if (now === 0) usesPerUnit.delete(id)
  else usesPerUnit.set(id, now)
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
