// A unit on its way from one state to another: a saga, where it arrives, and what becomes of the unit when it
// cannot. Every change that takes work outside the database goes this way, begun by a call or a loop and
// resumed by whoever finds the unit in a passing state.

import type { App } from '../../../app.ts'
import { limits } from '../../../contract/limits.ts'
import { isPassing, type UnitState } from '../../../contract/states.ts'
import { isEngineError } from '../../../engine/errors.ts'
import { MINUTE, SECOND } from '../../../lib/clock.ts'
import { runSaga, type Saga, type Step, StepFailed, undoSaga } from '../../../lib/saga.ts'
import { isOutage } from '../../../store/outage.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { saveProgress } from '../../../store/units.ts'

export type Walk = {
  app: App
  /** As the way has come to know it: its address, and its generation when a run had to be begun again. */
  unit: UnitRecord
  /** The image that was pulled for it. */
  imageDigest: string | null
  /** When the machine was started, by the monotonic clock, as far as this process knows. */
  startedMs: number | null
  /** The run went on with what an earlier one had in memory. */
  resumed: boolean
  /** The process ended on its own before it was ready, which has been recorded; that is no failure of ours. */
  ended: boolean
  /** The machine stands still instead of having been stopped. */
  frozen: boolean
  /** What was begun of the first step before the unit was on its way; null once it has been waited for. */
  begun: Promise<void> | null
}

export type Way = {
  saga: Saga<Walk>
  arrive: (walk: Walk) => Promise<void>
  /** Decides where the unit is left. Throws what the caller is to be told. */
  giveUp: (walk: Walk, failed: StepFailed<Walk>) => Promise<void>
}

/** The unit is on another way by now: somebody stops or destroys it. */
class Superseded extends Error {}

/** Takes the unit along the way, or joins whoever does. Rejects with what the caller is to be told. */
export async function walk(
  app: App,
  unit: UnitRecord,
  way: Way,
  begun: Promise<void> | null = null,
): Promise<void> {
  await app.ways.run(wayKey(unit), longestMs[unit.state] ?? MINUTE, () => walkAlone(app, unit, way, begun))
}

/** Who takes the unit along in this process, if anybody does. */
export function findWalk(app: App, unit: UnitRecord): Promise<void> | null {
  const isCopied = unit.state === 'creating' && unit.forkId !== null
  return app.ways.find(isCopied ? forkKey(unit.forkId ?? '') : wayKey(unit))
}

export function newWalk(app: App, unit: UnitRecord): Walk {
  return {
    app,
    unit,
    imageDigest: null,
    startedMs: null,
    resumed: false,
    ended: false,
    frozen: false,
    begun: null,
  }
}

/** The walk itself, for a way that nobody waits for. */
export async function walkAlone(
  app: App,
  unit: UnitRecord,
  way: Way,
  begun: Promise<void> | null = null,
): Promise<void> {
  const context = { ...newWalk(app, unit), begun }
  const journal = {
    done: unit.progress?.done ?? [],
    save: async (done: string[]) => {
      context.unit = { ...context.unit, progress: { done } }
      if (!(await saveProgress(app.db, context.unit))) throw new Superseded()
    },
  }
  const failed = await untilEngineIsBack<Walk>(app, () =>
    runSaga(way.saga, context, { journal, failpoints: app.failpoints }),
  )
  if (!failed) {
    await way.arrive(context)
    return tellOf(context, way.saga.name, 'arrived')
  }
  // Without a database nothing can be said of the unit; the way is taken up again when it is back.
  if (isOutage(failed.cause)) throw failed.cause
  if (!(failed.cause instanceof Superseded)) tellOf(context, way.saga.name, 'failed')
  await way.giveUp(context, failed)
}

/** For the operator: how long it took since the unit set out, whoever took it along. */
export function tellOf(
  { app, unit, resumed, ended }: Walk,
  name: string,
  outcome: 'arrived' | 'failed',
): void {
  const { state, stoppedReason, frozen, isolation, changedAt } = unit
  if (ended || !isPassing(state)) return
  const isWake = name === 'start' && stoppedReason !== 'user' && stoppedReason !== 'exited'
  const leadsToRun = state === 'creating' || state === 'starting'
  const tier = leadsToRun ? (resumed ? 'memory' : frozen ? 'frozen' : 'cold') : 'none'
  const ms = Math.max(0, app.clock.now().getTime() - changedAt.getTime())
  app.observer.wayEnded({ way: isWake ? 'wake' : name, isolation, tier, outcome, ms })
}

/** An engine that restarts is back in a second or two, and steps may be repeated: nobody need notice. */
export async function untilEngineIsBack<Context>(
  app: App,
  attempt: () => Promise<void>,
): Promise<StepFailed<Context> | null> {
  let deadlineMs: number | null = null
  for (;;) {
    try {
      await attempt()
      return null
    } catch (failed) {
      if (!(failed instanceof StepFailed)) throw failed
      if (!isEngineError(failed.cause, 'engine_away')) return failed
      // From when it was first found away: by then a long start may have taken its time.
      deadlineMs ??= app.clock.monotonicMs() + ENGINE_BACK_MS
      if (app.clock.monotonicMs() >= deadlineMs) return failed
    }
    await app.clock.sleep(ENGINE_PAUSE_MS)
  }
}

const ENGINE_BACK_MS = 20 * SECOND
const ENGINE_PAUSE_MS = 250

/** What could not be undone the reconciler takes care of: it removes and stops machines nobody wants. */
export async function undo(way: Way, context: Walk, reached: readonly Step<Walk>[]): Promise<void> {
  const { app, unit } = context
  const problems = await undoSaga(way.saga, context, { reached, failpoints: app.failpoints })
  for (const err of problems) app.log.warn({ err, unitId: unit.id }, 'a failure was not undone at once')
}

/** What is under way for longer hangs, and is begun anew beside it; every step may be done twice. */
const longestMs: Partial<Record<UnitState, number>> = {
  // A first pull or build of its image, and its healthcheck.
  creating: 40 * MINUTE + limits.healthcheckTimeoutMs.max,
  starting: 5 * MINUTE + limits.healthcheckTimeoutMs.max,
  stopping: 8 * MINUTE,
  destroying: 3 * MINUTE,
}

/** Copies that are being made go with their fork. */
export function forkKey(forkId: string): string {
  return `way of ${forkId}`
}

/** By revision: a start that failed is still being undone when the next one begins. */
function wayKey({ id, revision }: UnitRecord): string {
  return `way of ${id} ${revision}`
}
