// Desired state is in the database, actual state on the host; here they are brought together, after a
// restart and ever again. Everything is safe to do twice, and beside the operations themselves.

import type { App } from '../../app.ts'
import type { UnitState } from '../../contract/states.ts'
import type { MachineStatus } from '../../engine/engine.ts'
import { SECOND } from '../../lib/clock.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { listPassingUnits, listUnitsWithMachines } from '../../store/units.ts'
import { driveCreate } from './create.ts'
import { driveDestroy } from './destroy.ts'
import { isOfRun, lostRun, recordExit } from './exits.ts'
import { driveStart } from './start.ts'
import { driveStop } from './stop.ts'

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
    // Not waited for: one hung machine must not hold up the others.
    driveOn(app, unit).catch((error: unknown) => {
      // A create or start that failed has ended and said so; a stop or destroy is tried again next round.
      if (unit.state === 'creating' || unit.state === 'starting') return
      app.log.warn({ err: error, unitId: unit.id, state: unit.state }, 'a unit could not be driven on')
    })
  }
}

async function driveOn(app: App, unit: UnitRecord): Promise<void> {
  switch (unit.state) {
    case 'creating':
      return await driveCreate(app, unit)
    case 'starting':
      return await driveStart(app, unit)
    case 'stopping':
      return await driveStop(app, unit)
    case 'destroying':
      return await driveDestroy(app, unit)
    default:
      return
  }
}

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
  unit: { id: string; state: UnitState; generation: number },
  status: MachineStatus | undefined,
  isSettled: boolean,
): Promise<void> {
  if (isOfRun(unit, status)) {
    if (status.state !== 'running') return await recordExit(app, status)
    // A failed start or stop that could not be undone at the time.
    const isUnwanted = unit.state === 'stopped' || unit.state === 'sleeping'
    if (isUnwanted && isSettled) await app.engine.stop({ id: unit.id, generation: unit.generation }, 0)
  } else if (unit.state === 'running' && isSettled) {
    await recordExit(app, lostRun(unit))
  }
}

async function attempt(app: App, unitId: string, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    app.log.warn({ err: error, unitId }, 'a machine was not reconciled')
  }
}
