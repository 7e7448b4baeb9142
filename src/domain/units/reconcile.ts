// Desired state is in the database, actual state on the host; here they are brought together, after a
// restart and ever again. Everything is safe to do twice, and beside the operations themselves.

import type { App } from '../../app.ts'
import type { MachineStatus } from '../../engine/engine.ts'
import { SECOND } from '../../lib/clock.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { listPassingUnits, listUnitsWithMachines } from '../../store/units.ts'
import { createWay } from './create.ts'
import { destroyWay } from './destroy.ts'
import { isOfRun, lostRun, recordExit } from './exits.ts'
import { sleepWay } from './fall-asleep.ts'
import { STOP_GRACE_MS, startWay } from './run.ts'
import { stopWay } from './stop.ts'
import { thawWay } from './wake.ts'
import { walk, type Way } from './way.ts'

/**
 * Once before the first operation: the engine removes what is no unit's, and units that a crash left on
 * their way go on. Throws when the engine or the database is away; call it again then.
 */
export async function recover(app: App): Promise<void> {
  const wanted = await listUnitsWithMachines(app.db)
  const report = await app.engine.recover(wanted.map((unit) => unit.id))
  app.log.info(report, 'recovered')
  await reconcileMachines(app)
  await resumePassingUnits(app)
}

/** A loop's round: drives on what is in a passing state. Work that is under way already is joined. */
export async function resumePassingUnits(app: App): Promise<void> {
  for (const unit of await listPassingUnits(app.db, app.clock.now())) {
    const way = wayOf(unit)
    if (!way) continue
    // Not waited for: one hung machine must not hold up the others.
    walk(app, unit, way).catch((error: unknown) => {
      // A create or start that failed has ended and said so; a stop or destroy is tried again next round.
      if (unit.state === 'creating' || unit.state === 'starting') return
      app.log.warn({ err: error, unitId: unit.id, state: unit.state }, 'a unit could not be driven on')
    })
  }
}

/** What a unit in a passing state is on, read off the row alone: nobody may be left who remembers. */
function wayOf({ state, stoppedReason, frozen }: UnitRecord): Way | null {
  switch (state) {
    case 'creating':
      return createWay
    case 'starting':
      return frozen ? thawWay : startWay
    case 'stopping':
      return stoppedReason === 'idle' ? sleepWay : stopWay
    case 'destroying':
      return destroyWay
    default:
      return null
  }
}

type Unit = Pick<UnitRecord, 'id' | 'state' | 'generation' | 'frozen'>

/** A state younger than this may be ahead of the engine's list, which was read before it. */
const SETTLE_MS = 10 * SECOND

/** A loop's round: exits nobody told us of, runs the host knows nothing of, machines nobody wants. */
export async function reconcileMachines(app: App): Promise<void> {
  const listedAt = app.clock.now()
  // The list first: a machine's row is always older than the machine.
  const machines = new Map((await app.engine.list()).map((status) => [status.id, status]))
  const units = new Map((await listUnitsWithMachines(app.db)).map((unit) => [unit.id, unit]))
  const unwanted = [...machines.keys()].filter((id) => !units.has(id))
  await Promise.all([
    ...unwanted.map((id) => attempt(app, id, () => app.engine.destroy(id))),
    ...[...units.values()].map((unit) => {
      const isSettled = listedAt.getTime() - unit.changedAt.getTime() > SETTLE_MS
      return attempt(app, unit.id, () => reconcileMachine(app, unit, machines.get(unit.id), isSettled))
    }),
  ])
}

async function reconcileMachine(
  app: App,
  unit: Unit,
  status: MachineStatus | undefined,
  isSettled: boolean,
): Promise<void> {
  if (!isOfRun(unit, status)) {
    const ranHere = unit.state === 'running' || (unit.state === 'sleeping' && unit.frozen)
    if (ranHere && isSettled) await recordExit(app, lostRun(unit))
  } else if (status.state !== 'running') {
    await recordExit(app, status)
  } else if (isSettled) {
    await correct(app, unit, status)
  }
}

/** A machine that runs, and not as its unit says: what a crash tore, or an effect that came too late. */
async function correct(app: App, unit: Unit, status: MachineStatus): Promise<void> {
  const ref = { id: unit.id, generation: unit.generation }
  if (unit.state === 'running' && status.frozen) await app.engine.thaw(ref)
  if (unit.state === 'sleeping' && unit.frozen && !status.frozen) await app.engine.freeze(ref)
  const isUnwanted = unit.state === 'stopped' || (unit.state === 'sleeping' && !unit.frozen)
  if (isUnwanted) await app.engine.stop(ref, STOP_GRACE_MS)
}

async function attempt(app: App, unitId: string, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    app.log.warn({ err: error, unitId }, 'a machine was not reconciled')
  }
}
