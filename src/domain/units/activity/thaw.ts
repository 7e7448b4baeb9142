// Wakes a frozen unit: thaws its machine and changes its row. A visitor waits for the first byte, so the thaw begins as
// early as possible. There are two orders:
//
// - With the claim: the machine is thawed while the transaction that allows it commits. For every caller.
// - Ahead of the claim: the machine is thawed while the database is asked whether the unit may run, and the visit is
//   passed on while the change is written (decisions/wake.md). Only for units that this process froze itself (`takeFrozen`
//   in unit-activity.ts); it knows nothing of others without a query. The real decision is still the claim, under the team
//   lock with a revision check, and until then no other unit of the team is admitted. A machine that may not run is frozen
//   again. A unit is given by `takeFrozen` at most once per sleep, so repeatedly visiting a unit that may not run gains no
//   CPU time.

import { setImmediate } from 'node:timers/promises'
import type { App } from '../../../app.ts'
import { isEngineError } from '../../../engine/errors.ts'
import { SECOND } from '../../../lib/clock.ts'
import { completesWithin } from '../../../lib/concurrency/completes-within.ts'
import type { Step } from '../../../lib/saga.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { checkLastCredential, admitUnit, admitUnitInTeamLock } from '../admission/admit-unit.ts'
import type { Caller } from '../../credentials/caller.ts'
import { runOperation, type OperationContext, type UnitOperation } from '../lifecycle/operation.ts'
import { startOperation } from '../lifecycle/run.ts'
import { transition } from '../lifecycle/transition.ts'
import { machineRef } from '../model/machine.ts'

const thawStep: Step<OperationContext> = {
  name: 'thaw',
  run: async (context) => {
    const { app, unit, begun } = context
    context.begun = null
    await (begun ?? app.fleet.engineOf(unit).thaw(machineRef(unit)))
  },
}

/**
 * Takes a `starting` unit with a frozen machine to `running`. If anything is wrong with the machine, the unit is cold
 * started.
 */
export const thawOperation: UnitOperation = {
  saga: { name: 'wake', steps: [thawStep] },
  onSuccess: async ({ app, unit }) => void (await transition(app, unit, 'ready')),
  onFailure: async (context, failed) => {
    const { app, unit } = context
    if (isEngineError(failed.cause, 'engine_away')) return await startOperation.onFailure(context, failed)
    app.log.warn({ err: failed.cause, unitId: unit.id }, 'thaw failed; the unit is cold started')
    const again = await transition(app, unit, 'again')
    if (again) await runOperation(app, again, startOperation)
  },
}

/** Called with the unit once its machine is thawed, before its row says `running`. */
export type OnThawed = (unit: UnitRecord) => void

/**
 * Resolves when the unit runs, or another process has changed its state. If the commit fails, the unit sleeps with a running
 * machine, which the reconciler freezes again.
 */
export async function thawWithAdmission(
  app: App,
  caller: Caller | null,
  unit: UnitRecord,
  onThawed: OnThawed,
): Promise<void> {
  let begun: Promise<void> = Promise.resolve()
  const starting = await admitUnit(app, caller, unit, 'thaw', (taken) => {
    begun = beginThaw(app, taken)
  })
  if (!starting) return
  const woken = runOperation(app, starting, thawOperation, begun)
  begun.then(
    () => {
      app.activity.unwrittenWakes.note(starting, woken)
      onThawed(starting)
    },
    () => {},
  )
  await woken
}

/** The same for a unit from `takeFrozen`. It wakes for the credential it last ran for. */
export async function thawBeforeAdmission(app: App, unit: UnitRecord, onThawed: OnThawed): Promise<void> {
  const woken = thawThenClaim(app, unit, () => {
    app.activity.unwrittenWakes.note(unit, woken)
    onThawed(unit)
  })
  await woken
}

/**
 * Either takes milliseconds. A machine that hangs is left to the reconciler, and does not delay other units of the
 * team.
 */
const TIMEOUT_MS = SECOND

async function thawThenClaim(app: App, unit: UnitRecord, onMayRun: () => void): Promise<void> {
  let begun: Promise<void> = Promise.resolve()
  const starting = await app.teamLocks(unit.teamId, async () => {
    // It has left this process by now, and the database is asked at once: a visitor waits for the later of the two.
    begun = beginThaw(app, unit)
    const inTime = completesWithin(app.clock, TIMEOUT_MS, begun).catch(() => {})
    try {
      await checkLastCredential(app, app.db, unit)
      begun.then(onMayRun, () => {})
      await inTime
      // The answer has left before the change is put together.
      await setImmediate()
      const taken = await admitUnitInTeamLock(app, null, unit, 'thaw')
      if (!taken) app.activity.events.emit('runEnded', unit.id, unit.hostId)
      return taken
    } catch (error) {
      await refreeze(app, unit, begun)
      throw error
    }
  })
  if (starting) await runOperation(app, starting, thawOperation, begun)
}

function beginThaw(app: App, unit: UnitRecord): Promise<void> {
  const begun = app.fleet.engineOf(unit).thaw(machineRef(unit))
  // The operation reports its own failure.
  begun.catch(() => {})
  return begun
}

/** Its row says that it sleeps. A visit that was passed on to it meanwhile has to ask again. */
async function refreeze(app: App, unit: UnitRecord, begun: Promise<void>): Promise<void> {
  await completesWithin(app.clock, TIMEOUT_MS, begun).catch(() => {})
  app.activity.events.emit('runEnded', unit.id, unit.hostId)
  await completesWithin(app.clock, TIMEOUT_MS, app.fleet.engineOf(unit).freeze(machineRef(unit))).catch(
    () => {},
  )
}
