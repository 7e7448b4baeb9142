// Wakes a sleeping unit: a frozen machine is thawed, any other is started. Of several concurrent callers one does the
// work and the others wait with it. A wake that fails leaves the unit asleep with its disk (design 4).

import type { App } from '../../../app.ts'
import { isEngineError } from '../../../engine/errors.ts'
import { MINUTE } from '../../../lib/clock.ts'
import type { Step } from '../../../lib/saga.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { listUnitsTogether } from '../../../store/units.ts'
import type { Caller } from '../../credentials/caller.ts'
import { claimUnit } from '../admission/claim.ts'
import { machineRef } from '../model/machine.ts'
import { startOperation } from '../lifecycle/run.ts'
import { withWaiterLimit } from '../lifecycle/wait-until-stable.ts'
import { noteUnwrittenWake } from './written-wakes.ts'
import { transition } from '../lifecycle/transition.ts'
import { runOperation, type OperationContext, type UnitOperation } from '../lifecycle/operation.ts'

const thawStep: Step<OperationContext> = {
  name: 'thaw',
  run: async (context) => {
    const { app, unit, begun } = context
    context.begun = null
    await (begun ?? app.engine.thaw(machineRef(unit)))
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

/**
 * Resolves when the unit runs, or another process has changed its state; read it again then. If its stack sleeps
 * together, the others wake too, older units first, because an application needs its database. Without a caller each
 * unit runs for the credential it last ran for.
 *
 * `onThawed` is called once the machine is thawed, for callers that need not wait until the row says `running`.
 */
export async function wakeUnit(
  app: App,
  caller: Caller | null,
  unit: UnitRecord,
  onThawed: OnThawed = () => {},
): Promise<void> {
  const wake = unit.sleepsTogether ? wakeWithStack : wakeAlone
  await withWaiterLimit(app, unit, () => wake(app, caller, unit, onThawed))
}

type OnThawed = (starting: UnitRecord) => void

async function wakeWithStack(
  app: App,
  caller: Caller | null,
  unit: UnitRecord,
  onThawed: OnThawed,
): Promise<void> {
  await once(app, 'wake the stack of', caller, unit, async () => {
    const { teamId, stackId } = unit
    const stack = await listUnitsTogether(app.db, { teamId, stackId, now: app.clock.now() })
    const others = stack.filter(({ id, state }) => state === 'sleeping' && id !== unit.id)
    // If order does not matter, the requested unit comes first, because there may not be room for all.
    const comesBefore = (other: UnitRecord) => !unit.frozen && other.id < unit.id
    await wakeNeighbours(app, caller, others.filter(comesBefore))
    await wakeAlone(app, caller, unit, onThawed)
    void wakeNeighbours(
      app,
      caller,
      others.filter((other) => !comesBefore(other)),
    )
  })
}

/** A neighbour that cannot wake, for example because of its policy, must not keep others asleep. */
async function wakeNeighbours(app: App, caller: Caller | null, units: UnitRecord[]): Promise<void> {
  const wake = async (unit: UnitRecord) => {
    await wakeAlone(app, caller, unit).catch((error: unknown) => {
      app.log.warn({ err: error, unitId: unit.id }, 'unit did not wake with its stack')
    })
  }
  await Promise.all(units.filter(({ frozen }) => frozen).map(wake))
  for (const unit of units.filter(({ frozen }) => !frozen)) await wake(unit)
}

async function wakeAlone(
  app: App,
  caller: Caller | null,
  unit: UnitRecord,
  onThawed: OnThawed = () => {},
): Promise<void> {
  await once(app, 'wake', caller, unit, () =>
    unit.frozen ? thaw(app, caller, unit, onThawed) : startAnew(app, caller, unit),
  )
}

async function startAnew(app: App, caller: Caller | null, unit: UnitRecord): Promise<void> {
  const starting = await claimUnit(app, caller, unit, 'wake')
  if (starting) await runOperation(app, starting, startOperation)
}

/**
 * Thaws the machine while the transaction that allows it commits: if the commit fails, the unit sleeps with a running
 * machine, which the reconciler freezes again.
 */
async function thaw(app: App, caller: Caller | null, unit: UnitRecord, onThawed: OnThawed): Promise<void> {
  let begun: Promise<void> = Promise.resolve()
  const begin = (taken: UnitRecord) => {
    begun = app.engine.thaw(machineRef(taken))
    // The operation reports its own failure.
    begun.catch(() => {})
  }
  const starting = await claimUnit(app, caller, unit, 'thaw', begin)
  if (!starting) return
  const woken = runOperation(app, starting, thawOperation, begun)
  begun.then(
    () => {
      noteUnwrittenWake(app, starting, woken)
      onThawed(starting)
    },
    () => {},
  )
  await woken
}

/** Per credential: one that may run no more units must not fail the calls of others. */
async function once(
  app: App,
  what: string,
  caller: Caller | null,
  { id, revision, heldBy }: UnitRecord,
  work: () => Promise<void>,
): Promise<void> {
  const key = `${what} ${id} ${revision} for ${caller?.credentialId ?? heldBy}`
  await app.unitOperations.run(key, LONGEST_WAKE_MS, work)
}

const LONGEST_WAKE_MS = 10 * MINUTE
