// The background jobs of sleep: idle units fall asleep, and units that have slept long are hibernated.

import type { App } from '../../../app.ts'
import { SECOND } from '../../../lib/clock.ts'
import { completesWithin } from '../../../lib/concurrency/completes-within.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { listFrozenUnits, listUnitsDueToSleep } from '../../../store/units-of-jobs.ts'
import { isKeptAwake } from './kept-awake.ts'
import { hibernateUnit, sleepOperation } from './hibernate.ts'
import { transition } from '../lifecycle/transition.ts'
import { runOperation } from '../lifecycle/operation.ts'

const BATCH = 500

/** One run of the background job. Reads what is due from the store, so it may run twice at once. */
export async function sleepIdleUnits(app: App): Promise<void> {
  const now = app.clock.now()
  const due = await listUnitsDueToSleep(app.db, { now, limit: BATCH })
  // A use in progress counts even if it could not be recorded. During an outage, uses may have failed without being
  // recorded.
  const unused = due.filter(({ id, hostId }) => !app.activity.uses.has(id) && !app.outages.has(hostId))
  await Promise.all(
    unused.map(async (unit) => {
      if (await isKeptAwake(app, unit)) return
      // A use after the reading moves sleepsAt, and then the unit stays awake.
      const stopping = await transition(app, unit, 'idle', { ifDue: true })
      // Not awaited: one machine that is slow to stop must not keep others awake.
      if (stopping)
        void runOperation(app, stopping, sleepOperation).catch(logFailure(app, unit, 'did not fall asleep'))
    }),
  )
}

/** One run of the background job that hibernates units frozen for long enough. */
export async function hibernateFrozenUnits(app: App): Promise<void> {
  const now = app.clock.now()
  const { frozenForMs } = app.config
  if (frozenForMs === null) return
  const since = new Date(now.getTime() - frozenForMs)
  for (const unit of await listFrozenUnits(app.db, { now, since, limit: BATCH })) void hibernate(app, unit)
}

/** Under memory pressure a few at a time: the next run sees what they freed. */
const AT_ONCE = 8
/** A machine that is slow to stop must not delay the next ones. */
const GIVE_BACK_MS = 5 * SECOND

/**
 * One run of the background job: hibernates the units asleep longest on each host whose memory is too short for waiting
 * starts (cold-starts.ts).
 */
export async function giveMemoryBack(app: App): Promise<void> {
  await Promise.all(app.fleet.hosts().map((host) => giveMemoryOfHostBack(app, host.id)))
}

async function giveMemoryOfHostBack(app: App, hostId: string): Promise<void> {
  if (!(await app.coldStarts(hostId).isOverloaded())) return
  const which = { now: app.clock.now(), since: null, hostId, limit: AT_ONCE }
  const longest = await listFrozenUnits(app.db, which)
  await completesWithin(app.clock, GIVE_BACK_MS, Promise.all(longest.map((unit) => hibernate(app, unit))))
}

async function hibernate(app: App, unit: UnitRecord): Promise<void> {
  await hibernateUnit(app, unit).catch(logFailure(app, unit, 'was not hibernated'))
}

function logFailure(app: App, { id }: UnitRecord, what: string): (error: unknown) => void {
  return (error) => app.log.warn({ err: error, unitId: id }, `a unit ${what} at once`)
}
