// Operations that need the unit's machine: they wake it, keep it awake while they run, and record its end at once if
// it turns out to be gone, so that the refusal says how it ended.

import type { App } from '../../../app.ts'
import { type AppError, unavailable } from '../../../contract/errors.ts'
import { type EngineErrorKind, isEngineError } from '../../../engine/errors.ts'
import { SECOND } from '../../../lib/clock.ts'
import { completesWithin } from '../../../lib/concurrency/completes-within.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { findUnitOfAnyTeam } from '../../../store/units.ts'
import type { Caller } from '../../credentials/caller.ts'
import { checkUse } from '../../policies/egress.ts'
import { checkSecrets } from '../../policies/secrets.ts'
import { recordEndOf } from '../lifecycle/exits.ts'
import { machineRef } from '../model/machine.ts'
import { engineFailure, notPossibleNow } from '../lifecycle/failures.ts'
import { retryOnConflict } from '../lifecycle/retry-on-conflict.ts'
import { waitUntilStable } from '../lifecycle/wait-until-stable.ts'
import { isFallingAsleep, wakeUnit } from './wake.ts'
import { recordUse, recordUseById, whileInUse } from './record-use.ts'
import type { Used } from './used-lately.ts'

/** A little longer than a start may wait for admission. */
const WAIT_MS = 45 * SECOND
/** For a unit being created: the call that created it learns when it is ready, so this call need not wait as long. */
const CREATING_MS = 10 * SECOND
const RETRY_AFTER_S = 5

/**
 * Runs the work on the running unit, as a use that moves `sleepsAt`. `refused` says in the error what is not
 * possible, such as "no command can run in it". `written`: the unit is read meanwhile, and nothing else happens before it
 * resolves.
 */
export async function useUnit<T>(
  app: App,
  caller: Caller,
  id: string,
  refused: string,
  work: (unit: UnitRecord) => Promise<T>,
  written: Promise<void> | null = null,
): Promise<T> {
  const deadlineMs = app.clock.monotonicMs() + WAIT_MS
  const leftMs = () => deadlineMs - app.clock.monotonicMs()
  const begin = async (unit: UnitRecord) => {
    await written
    return await work(unit)
  }
  const atOnce = await tryToUseKnown(app, caller, id, begin)
  if (atOnce) return atOnce.result
  const done = await retryOnConflict(async () => {
    const unit = await waitUntilStable(app, caller, id, leftMs(), CREATING_MS)
    checkAllowed(caller, app.activity.usedLately.note(unit))
    if (unit.state === 'running') {
      return await tryToUse(app, id, async () => ((await recordUse(app, unit)) ? unit : null), begin)
    }
    if (unit.state !== 'sleeping') throw mayWake(unit) ? notAwake() : notPossibleNow(unit, refused)
    await written
    if (!(await completesWithin(app.clock, leftMs(), wakeUnit(app, caller, unit)))) throw notAwake()
    return null
  })
  if (done === null) throw notAwake()
  return done.result
}

/** A caller must not reach or use by a unit what it could not by one of its own. */
function checkAllowed(caller: Caller, { egress, teamSecrets }: Used): void {
  checkUse(caller.policy, egress)
  checkSecrets(caller, teamSecrets)
}

/**
 * The same for a unit that this process knows from an earlier use, and that most likely runs and may be used: one statement
 * records the use and reads the unit, which is then checked as it is now. Null: it has to be looked at first.
 */
async function tryToUseKnown<T>(
  app: App,
  caller: Caller,
  id: string,
  work: (unit: UnitRecord) => Promise<T>,
): Promise<{ result: T } | null> {
  const known = app.activity.usedLately.find(id)
  // Of another team's units nothing is counted or recorded.
  if (known?.teamId !== caller.teamId || !isAllowed(caller, known)) return null
  return await tryToUse(
    app,
    id,
    () => recordUseById(app, { teamId: caller.teamId, id }),
    (unit) => {
      checkAllowed(caller, app.activity.usedLately.note(unit))
      return work(unit)
    },
  )
}

function isAllowed(caller: Caller, known: Used): boolean {
  try {
    checkAllowed(caller, known)
    return true
  } catch {
    return false
  }
}

/** Errors of a machine that is frozen, has ended, or was destroyed at that moment. */
const notBegun: EngineErrorKind[] = ['frozen', 'not_running', 'unknown_machine']

/** Returns null if the work has not started: it may then be tried again on a unit that can be woken. */
async function tryToUse<T>(
  app: App,
  id: string,
  record: () => Promise<UnitRecord | null>,
  work: (unit: UnitRecord) => Promise<T>,
): Promise<{ result: T } | null> {
  let used: UnitRecord | null = null
  const recorded = async () => {
    used = await record()
    return used
  }
  try {
    return await whileInUse(app, id, recorded, work)
  } catch (error) {
    const unit = used as UnitRecord | null
    if (!unit) throw error
    if (!isEngineError(error) || !notBegun.includes(error.kind)) throw engineFailure(error, unit)
    await settleWith(app, unit).catch((problem: unknown) => {
      throw engineFailure(problem, unit)
    })
    return null
  }
}

/** The machine's state differs from the unit's: records its end, or thaws a machine that was frozen too late. */
async function settleWith(app: App, unit: UnitRecord): Promise<void> {
  await app.activity.operations.run(`settle with ${unit.id} ${unit.generation}`, WAIT_MS, async () => {
    await recordEndOf(app, unit)
    const now = await findUnitOfAnyTeam(app.db, { id: unit.id, now: app.clock.now() })
    if (now?.state === 'running' && now.generation === unit.generation)
      await app.fleet.engineOf(now).thaw(machineRef(now))
  })
}

/** Whether waiting longer would help: the unit is going to run, or to sleep, from where a call can wake it. */
function mayWake(unit: UnitRecord): boolean {
  return unit.state === 'starting' || isFallingAsleep(unit)
}

function notAwake(): AppError {
  return unavailable(`The unit is still waking; try again in ${RETRY_AFTER_S} s.`, RETRY_AFTER_S)
}
