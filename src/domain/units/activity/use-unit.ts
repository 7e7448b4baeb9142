// Operations that need the unit's machine: they wake it, keep it awake while they run, and record its end at once if
// it turns out to be gone, so that the refusal says how it ended.

import type { App } from '../../../app.ts'
import { teamSecretsOf } from '../../../contract/env.ts'
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
import { wakeUnit } from './wake.ts'
import { whileInUse } from './record-use.ts'

/** A little longer than a start may wait for admission. */
const WAIT_MS = 45 * SECOND
/** For a unit being created: the call that created it learns when it is ready, so this call need not wait as long. */
const CREATING_MS = 10 * SECOND
const RETRY_AFTER_S = 5

/**
 * Runs the work on the running unit, as a use that moves `sleepsAt`. `refused` says in the error what is not
 * possible, such as "no command can run in it".
 */
export async function useUnit<T>(
  app: App,
  caller: Caller,
  id: string,
  refused: string,
  work: (unit: UnitRecord) => Promise<T>,
): Promise<T> {
  const deadlineMs = app.clock.monotonicMs() + WAIT_MS
  const leftMs = () => deadlineMs - app.clock.monotonicMs()
  const done = await retryOnConflict(async () => {
    const unit = await waitUntilStable(app, caller, id, leftMs(), CREATING_MS)
    // A caller must not reach or use by a unit what it could not by one of its own.
    checkUse(caller.policy, unit.egress)
    checkSecrets(caller, teamSecretsOf(unit.spec.env))
    if (unit.state === 'running') return await tryToUse(app, unit, work)
    if (unit.state !== 'sleeping') throw mayWake(unit) ? notAwake() : notPossibleNow(unit, refused)
    if (!(await completesWithin(app.clock, leftMs(), wakeUnit(app, caller, unit)))) throw notAwake()
    return null
  })
  if (done === null) throw notAwake()
  return done.result
}

/** Errors of a machine that is frozen, has ended, or was destroyed at that moment. */
const notBegun: EngineErrorKind[] = ['frozen', 'not_running', 'unknown_machine']

/** Returns null if the work has not started: it may then be tried again on a unit that can be woken. */
async function tryToUse<T>(
  app: App,
  unit: UnitRecord,
  work: (unit: UnitRecord) => Promise<T>,
): Promise<{ result: T } | null> {
  try {
    return await whileInUse(app, unit, () => work(unit))
  } catch (error) {
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
function mayWake({ state, stoppedReason }: UnitRecord): boolean {
  return state === 'starting' || (state === 'stopping' && stoppedReason === 'idle')
}

function notAwake(): AppError {
  return unavailable(`The unit is still waking; try again in ${RETRY_AFTER_S} s.`, RETRY_AFTER_S)
}
