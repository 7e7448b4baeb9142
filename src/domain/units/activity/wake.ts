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

/** A `starting` unit whose machine is frozen to `running`. Any doubt about the machine means a cold start. */
export const thawOperation: UnitOperation = {
  saga: { name: 'wake', steps: [thawStep] },
  onSuccess: async ({ app, unit }) => void (await transition(app, unit, 'ready')),
  onFailure: async (context, failed) => {
    const { app, unit } = context
    if (isEngineError(failed.cause, 'engine_away')) return await startOperation.onFailure(context, failed)
    app.log.warn({ err: failed.cause, unitId: unit.id }, 'a frozen machine is started anew')
    const again = await transition(app, unit, 'again')
    if (again) await runOperation(app, again, startOperation)
  },
}

/**
 * Resolves when the unit runs, or somebody else has taken it elsewhere; read it anew then. Where its stack
 * sleeps together the others wake too, those made before it first: an application finds its database there.
 * Without a caller each runs on the account that it last ran on.
 *
 * `onThawed`: whoever does not go by the unit's row need not wait until that says `running`.
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
    // Where order does not matter the one that was called comes first: there may not be room for all.
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

/** A neighbour that cannot wake, for want of a place under the policy say, keeps nobody else asleep. */
async function wakeNeighbours(app: App, caller: Caller | null, units: UnitRecord[]): Promise<void> {
  const wake = async (unit: UnitRecord) => {
    await wakeAlone(app, caller, unit).catch((error: unknown) => {
      app.log.warn({ err: error, unitId: unit.id }, 'a unit did not wake with its stack')
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
 * The machine is thawed beside the commit that lets it: a unit that sleeps on because that failed has a machine that
 * goes on, which the reconciler freezes again.
 */
async function thaw(app: App, caller: Caller | null, unit: UnitRecord, onThawed: OnThawed): Promise<void> {
  let begun: Promise<void> = Promise.resolve()
  const begin = (taken: UnitRecord) => {
    begun = app.engine.thaw(machineRef(taken))
    // The operation reports a failure.
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

/** By credential too: one that may run no more units must not fail the others who ask. */
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
