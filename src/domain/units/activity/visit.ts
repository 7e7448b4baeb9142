// A visit needs its unit awake, and keeps it awake for a while. There is no caller, so a sleeping unit wakes for the
// credential it last ran for.

import type { App } from '../../../app.ts'
import { AppError } from '../../../contract/errors.ts'
import { VISIT_WAIT_MS, type Visited, type VisitRefusal } from '../../../contract/visit.ts'
import { completesWithin } from '../../../lib/concurrency/completes-within.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { setUnitLabels } from '../../../store/unit-ends.ts'
import { findUnitOfAnyTeam } from '../../../store/units.ts'
import { waitForChange } from '../lifecycle/wait-until-stable.ts'
import { recordUse } from './record-use.ts'
import { wakeUnit, type WakeOptions } from './wake.ts'

const RETRY_AFTER_S = 5
const waiting: Visited = { kind: 'waiting', retryAfterS: RETRY_AFTER_S }

/** Records a use of the unit. Wakes it first if it sleeps, and its stack if that sleeps together. */
export async function visitUnit(app: App, id: string): Promise<Visited> {
  const deadlineMs = app.clock.monotonicMs() + VISIT_WAIT_MS
  const leftMs = () => deadlineMs - app.clock.monotonicMs()
  const frozen = app.activity.takeFrozen(id)
  if (frozen) {
    const answer = await tryToWake(app, frozen, leftMs(), { beforeAdmission: true })
    if (answer) return await withItsTime(app, frozen, answer)
  }
  for (let woken = false; leftMs() > 0; ) {
    const unit = await findUnitOfAnyTeam(app.db, { id, now: app.clock.now() })
    if (!unit || unit.state === 'destroyed' || unit.state === 'destroying' || unit.state === 'error') {
      return { kind: 'refused', reason: 'gone' }
    }
    if (unit.state === 'stopped') return { kind: 'refused', reason: stoppedFor(unit) }
    if (unit.state === 'running') {
      // Waking already counted as a use.
      if (woken || (await recordUse(app, unit))) return toRunning(unit)
    } else if (unit.state === 'sleeping') {
      const answer = await tryToWake(app, unit, leftMs())
      if (answer) return await withItsTime(app, unit, answer)
      woken = true
      await withItsTime(app, unit, waiting)
    } else {
      await completesWithin(app.clock, leftMs(), waitForChange(app, unit))
    }
  }
  return waiting
}

/** One whose time was over when it fell asleep has the time again that its visits give it. */
async function withItsTime(
  app: App,
  { id, teamId, portRules, timeToLive }: UnitRecord,
  visited: Visited,
): Promise<Visited> {
  const wakesFor = portRules?.wakesFor ?? null
  if (wakesFor === null || timeToLive !== null || visited.kind === 'refused') return visited
  await app.clock.withStableTime(
    async () => await setUnitLabels(app.db, { teamId, id, at: app.clock.now() }, { timeToLive: wakesFor }),
  )
  return visited
}

function toRunning({ id, generation, address }: UnitRecord): Visited {
  if (address === null) throw new Error(`${id} runs without an address`)
  return { kind: 'running', generation, address }
}

function stoppedFor({ stoppedReason }: UnitRecord): VisitRefusal {
  switch (stoppedReason) {
    case 'exited':
    case 'cap':
    case 'credits':
      return stoppedReason
    default:
      return 'stopped'
  }
}

/**
 * Returns null if the unit has woken or changed state: read it again. A frozen unit can be visited as soon as it is
 * thawed.
 */
async function tryToWake(
  app: App,
  unit: UnitRecord,
  withinMs: number,
  options: Pick<WakeOptions, 'beforeAdmission'> = {},
): Promise<Visited | null> {
  const thawed = Promise.withResolvers<UnitRecord>()
  let there: UnitRecord | null = null
  const onThawed = (starting: UnitRecord) => {
    there = starting
    thawed.resolve(starting)
  }
  const woken = wakeUnit(app, null, unit, { ...options, onThawed })
  return await unlessRefused(app, unit.id, async () => {
    const isOver = await completesWithin(app.clock, withinMs, Promise.race([woken, thawed.promise]))
    if (there) return toRunning(there)
    return isOver ? null : waiting
  })
}

/** Returns the result of the attempt, or the refusal that the visitor gets. */
async function unlessRefused(
  app: App,
  unitId: string,
  attempt: () => Promise<Visited | null>,
): Promise<Visited | null> {
  try {
    return await attempt()
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    app.log.info({ unitId, reason: error.message }, 'visit did not wake its unit')
    switch (error.code) {
      case 'unavailable':
        return { kind: 'waiting', retryAfterS: error.retryAfterS ?? RETRY_AFTER_S }
      case 'quota_exceeded':
        return { kind: 'refused', reason: 'no-room' }
      case 'payment_required':
        return { kind: 'refused', reason: 'credits' }
      default:
        return { kind: 'refused', reason: 'failed' }
    }
  }
}
