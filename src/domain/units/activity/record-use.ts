// Uses of a unit move `sleepsAt` (design 4): an exec while it runs, reading or writing a file, a start, a visit, and
// packets from siblings. Reading the unit itself is not a use.

import type { App } from '../../../app.ts'
import { MINUTE, NOT_NEEDED, SECOND } from '../../../lib/clock.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { touchUnit, touchUnits, useRunningUnit } from '../../../store/unit-use.ts'

/**
 * Returns false if the unit does not run any more. Uses that arrive while one is being recorded are recorded
 * together.
 */
export async function recordUse(app: App, { id, sleepsTogether }: UnitRecord): Promise<boolean> {
  const touch = async (usedAt: Date) =>
    sleepsTogether
      ? (await touchUnits(app.db, { ids: [id], usedAt })).has(id)
      : await touchUnit(app.db, { id, usedAt })
  return await app.activity.useWrites.run(id, () => app.clock.withStableTime(() => touch(app.clock.now())))
}

/** Returns the ids of the units that run. */
export async function recordUses(app: App, ids: string[]): Promise<Set<string>> {
  return await app.clock.withStableTime(() => touchUnits(app.db, { ids, usedAt: app.clock.now() }))
}

/** The shortest idle window is a minute, so a use renewed this often never looks idle. */
const RENEW_EVERY_MS = MINUTE / 3
/** A shorter use is covered by the record made at its beginning. */
const SHORT_MS = SECOND

/** Records a use of a unit of the team, and returns it. Null: it does not run by itself, and nothing was recorded. */
export async function recordUseById(
  app: App,
  unit: { teamId: string; id: string },
): Promise<UnitRecord | null> {
  const use = () => useRunningUnit(app.db, { ...unit, usedAt: app.clock.now() })
  return await app.activity.usedReads.run(`${unit.teamId} ${unit.id}`, () => app.clock.withStableTime(use))
}

/** Runs the work as a use of the unit. Returns null without running it if the unit that `record` returns is null. */
export async function whileInUse<T>(
  app: App,
  id: string,
  record: () => Promise<UnitRecord | null>,
  work: (unit: UnitRecord) => Promise<T>,
): Promise<{ result: T } | null> {
  // Counted before it is recorded, and even if it cannot be, so that a sleep that starts now sees one or the other (sleep.ts,
  // idle.ts).
  const endUse = app.activity.uses.begin(id)
  try {
    const unit = await record()
    return unit && { result: await renewing(app, unit, () => work(unit)) }
  } finally {
    endUse()
  }
}

async function renewing<T>(app: App, unit: UnitRecord, work: () => Promise<T>): Promise<T> {
  const done = new AbortController()
  const startedMs = app.clock.monotonicMs()
  const renewed = renew(app, unit, done.signal)
  try {
    return await work()
  } finally {
    done.abort(NOT_NEEDED)
    await renewed
    if (app.clock.monotonicMs() - startedMs > SHORT_MS) await recordUse(app, unit).catch(logFailure(app))
  }
}

async function renew(app: App, unit: UnitRecord, done: AbortSignal): Promise<void> {
  for (;;) {
    await app.clock.sleep(RENEW_EVERY_MS, done).catch(() => {})
    if (done.aborted) return
    await recordUse(app, unit).catch(logFailure(app))
  }
}

/** A failure to record a use must not fail the use. */
function logFailure(app: App): (error: unknown) => void {
  return (error) => app.log.warn({ err: error }, 'use could not be recorded')
}
