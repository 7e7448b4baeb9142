// The one way in which a sleeping unit comes to run: a frozen machine is thawed (thaw.ts), any other is started. Of several
// concurrent callers one does the work and the others wait with it. A wake that fails leaves the unit asleep with its disk
// (design 4).
// Whether it may run is decided in admission/admit-unit.ts.

import type { App } from '../../../app.ts'
import { MINUTE, SECOND } from '../../../lib/clock.ts'
import { completesWithin } from '../../../lib/concurrency/completes-within.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { findUnitOfAnyTeam } from '../../../store/units.ts'
import { listUnitsTogether } from '../../../store/units-of-jobs.ts'
import type { Caller } from '../../credentials/caller.ts'
import { admitUnit } from '../admission/admit-unit.ts'
import { startOperation } from '../lifecycle/run.ts'
import { waitForChange, withWaiterLimit } from '../lifecycle/wait-until-stable.ts'
import { runOperation } from '../lifecycle/operation.ts'
import { type OnThawed, thawBeforeAdmission, thawWithAdmission } from './thaw.ts'

export type WakeOptions = {
  /** Called once the machine is thawed, for a caller that need not wait until the row says `running`. */
  onThawed?: OnThawed
  /** The record is from `takeFrozen`: the machine may be thawed before the database allows it. Only without a caller. */
  beforeAdmission?: boolean
}

/**
 * Resolves when the unit runs, or another process has changed its state; read it again then. If its stack sleeps
 * together, the others wake too, older units first, because an application needs its database. Without a caller each
 * unit runs for the credential it last ran for.
 */
export async function wakeUnit(
  app: App,
  caller: Caller | null,
  unit: UnitRecord,
  options: WakeOptions = {},
): Promise<void> {
  const wake = unit.sleepsTogether ? wakeWithStack : wakeAlone
  await withWaiterLimit(app, unit, () => wake(app, caller, unit, options))
}

async function wakeWithStack(
  app: App,
  caller: Caller | null,
  unit: UnitRecord,
  options: WakeOptions,
): Promise<void> {
  await once(app, 'wake the stack of', caller, unit, async () => {
    const { teamId, stackId } = unit
    const stack = await listUnitsTogether(app.db, { teamId, stackId, now: app.clock.now() })
    // Nothing else would wake one that still falls asleep.
    const others = stack.filter(
      (other) => other.id !== unit.id && (other.state === 'sleeping' || isFallingAsleep(other)),
    )
    // If order does not matter, the requested unit comes first, because there may not be room for all.
    const comesBefore = (other: UnitRecord) => !unit.frozen && other.id < unit.id
    await wakeNeighbours(app, caller, others.filter(comesBefore))
    await wakeAlone(app, caller, unit, options)
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
    try {
      const asleep = await onceAsleep(app, unit)
      if (asleep) await wakeAlone(app, caller, asleep)
    } catch (error) {
      app.log.warn({ err: error, unitId: unit.id }, 'unit did not wake with its stack')
    }
  }
  await Promise.all(units.filter(({ frozen }) => frozen).map(wake))
  for (const unit of units.filter(({ frozen }) => !frozen)) await wake(unit)
}

/** On its way to sleep, from where a call can wake it. */
export function isFallingAsleep({ state, stoppedReason }: UnitRecord): boolean {
  return state === 'stopping' && stoppedReason === 'idle'
}

/** How long a unit may take to fall asleep before this counts as a failed wake. */
const SETTLE_MS = 20 * SECOND

/** Waits for one that falls asleep. Returns null if it is in another state by then; throws if it takes too long. */
export async function onceAsleep(app: App, unit: UnitRecord): Promise<UnitRecord | null> {
  if (unit.state === 'sleeping') return unit
  if (!isFallingAsleep(unit)) return null
  await completesWithin(app.clock, SETTLE_MS, waitForChange(app, unit))
  const now = await findUnitOfAnyTeam(app.db, { id: unit.id, now: app.clock.now() })
  if (now?.state === 'stopping') throw new Error('the unit takes too long to fall asleep')
  return now?.state === 'sleeping' ? now : null
}

async function wakeAlone(
  app: App,
  caller: Caller | null,
  unit: UnitRecord,
  { onThawed = () => {}, beforeAdmission = false }: WakeOptions = {},
): Promise<void> {
  await once(app, 'wake', caller, unit, async () => {
    if (!unit.frozen) return await startAnew(app, caller, unit)
    if (beforeAdmission && caller === null) return await thawBeforeAdmission(app, unit, onThawed)
    await thawWithAdmission(app, caller, unit, onThawed)
  })
}

async function startAnew(app: App, caller: Caller | null, unit: UnitRecord): Promise<void> {
  const starting = await admitUnit(app, caller, unit, 'wake')
  if (starting) await runOperation(app, starting, startOperation)
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
  await app.activity.operations.run(key, LONGEST_WAKE_MS, work)
}

const LONGEST_WAKE_MS = 10 * MINUTE
