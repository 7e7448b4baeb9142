// Brings the desired state in the database and the actual state on the host together, after a restart and every few
// seconds. Every step is safe to repeat, and safe to run at the same time as the operations themselves.

import type { App } from '../../app.ts'
import type { MachineStatus } from '../../engine/engine.ts'
import type { FleetHost } from '../../engine/fleet.ts'
import { MINUTE, SECOND } from '../../lib/clock.ts'
import { completesWithin } from '../../lib/concurrency/completes-within.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { listTransitionalUnits, listUnitsWithMachines } from '../../store/units-of-jobs.ts'
import { resumeTime } from '../time/clock-jumps.ts'
import { learnCapabilities } from '../hosts/capabilities.ts'
import { onEachHost } from '../hosts/each-host.ts'
import { noteOutages, recordHeartbeat } from '../time/heartbeat.ts'
import { createOperation } from './create.ts'
import { destroyOperation } from './destroy.ts'
import { isOfRun, lostRun, recordExit } from './lifecycle/exits.ts'
import { sleepOperation } from './activity/hibernate.ts'
import { STOP_GRACE_MS, startOperation } from './lifecycle/run.ts'
import { stopOperation } from './stop.ts'
import { findUnknownMachines, putMachineAside, reportUnknownRun } from './lifecycle/unknown-runs.ts'
import { thawOperation } from './activity/thaw.ts'
import { runOperation, type UnitOperation } from './lifecycle/operation.ts'

/**
 * Call it once before the first operation, and again if it throws: the database or the server's own engine is
 * unavailable then. Interrupted operations are resumed.
 */
export async function recover(app: App): Promise<void> {
  noteOutages(app)
  await resumeTime(app)
  const local = app.fleet.findLocal()
  if (local) await recoverHost(app, local)
  await reconcileMachines(app)
  await resumeOperations(app)
}

/** The engine removes machines of destroyed units, and puts aside machines of unknown ones. */
export async function recoverHost(app: App, host: FleetHost): Promise<void> {
  const wanted = await listUnitsWithMachines(app.db, { hostId: host.id })
  const ids = new Set(wanted.map((unit) => unit.id))
  const there = (await host.engine.list()).map(({ id }) => id)
  const unknown = await findUnknownMachines(
    app,
    host,
    there.filter((id) => !ids.has(id)),
  )
  await Promise.all(unknown.map((id) => logged(app, id, putMachineAside(app, host, id))))
  // A machine that could not be put aside stays where it is: the job tries again.
  const left = new Set((await host.engine.list()).map(({ id }) => id))
  const report = await host.engine.recover([...ids, ...unknown.filter((id) => left.has(id))])
  app.log.info({ ...report, host: host.name }, 'recovered')
}

/** One run of the background job: resumes units in a transitional state. An operation in progress is joined. */
export async function resumeOperations(app: App): Promise<void> {
  for (const unit of await listTransitionalUnits(app.db, app.clock.now())) {
    const way = operationOf(unit)
    if (!way) continue
    // Not awaited: one machine that hangs must not delay the others.
    runOperation(app, unit, way).catch((error: unknown) => {
      // A create or start that failed has ended and recorded that; a stop or destroy is retried in the next run.
      if (unit.state === 'creating' || unit.state === 'starting') return
      app.log.warn({ err: error, unitId: unit.id, state: unit.state }, 'unit operation failed to resume')
    })
  }
}

/**
 * Returns the operation of a unit in a transitional state, from its row alone: the process that started it may be
 * gone.
 */
function operationOf({ state, stoppedReason, frozen }: UnitRecord): UnitOperation | null {
  switch (state) {
    case 'creating':
      return createOperation
    case 'starting':
      return frozen ? thawOperation : startOperation
    case 'stopping':
      return stoppedReason === 'idle' ? sleepOperation : stopOperation
    case 'destroying':
      return destroyOperation
    default:
      return null
  }
}

type Unit = Pick<UnitRecord, 'id' | 'hostId' | 'state' | 'generation' | 'frozen'>
/** The unit's row and the engine's status. `isSettled` false: the status is older than the row. */
type Pair = { unit: Unit; status: MachineStatus | undefined; isSettled: boolean }

const SETTLE_MS = 10 * SECOND
/** A machine that is slow to obey must not delay the next run. */
const LONGEST_WAIT_MS = 5 * SECOND
/** Longer than the engine's own timeouts. */
const LONGEST_CORRECTION_MS = 8 * MINUTE

/**
 * One run of the background job: finds exits that were not reported, runs that their host does not know, and machines
 * that should not exist. Hosts do not wait for each other.
 */
export async function reconcileMachines(app: App): Promise<void> {
  await onEachHost(app, 'reconcile', (host) => reconcileHost(app, host))
}

/** On one host. It has a heartbeat then, unless a run there is too young to tell. */
export async function reconcileHost(app: App, host: FleetHost): Promise<void> {
  const { engine } = host
  const listedAt = app.clock.now()
  const seenMs = app.clock.monotonicMs()
  // The engine is asked first: a machine's row is always older than the machine.
  const statuses = new Map((await engine.list()).map((status) => [status.id, status]))
  await learnCapabilities(app, host)
  const units = await listUnitsWithMachines(app.db, { hostId: host.id })
  const pairs = units.map((unit) => {
    const isSettled = listedAt.getTime() - unit.changedAt.getTime() > SETTLE_MS
    return { unit, status: statuses.get(unit.id), isSettled }
  })

  const ends = pairs.flatMap((pair) => endOf(pair) ?? [])
  await Promise.all(ends.map((end) => logged(app, end.id, recordExit(app, end))))
  // Last, because what is found dead was last seen alive at the previous heartbeat.
  if (!host.isLost && !pairs.some(isInDoubt)) await recordHeartbeat(app, host, { seenMs })

  for (const { unit, status, isSettled } of pairs)
    if (isSettled && status) reportUnknownRun(app, unit, status)
  for (const { id } of units) statuses.delete(id)
  const unwanted = [...statuses.keys()]
  const unknown = new Set(await findUnknownMachines(app, host, unwanted))
  const corrections = [
    ...unwanted.map((id) => ({
      id,
      effect: () => (unknown.has(id) ? putMachineAside(app, host, id) : engine.destroy(id)),
    })),
    ...pairs.flatMap((pair) => correctionOf(host, pair) ?? []),
  ]
  await completesWithin(
    app.clock,
    LONGEST_WAIT_MS,
    Promise.all(corrections.map((each) => correct(app, each))),
  )
}

/** Returns how the unit's run ended if it ended and the unit's row does not say so, else null. */
function endOf({ unit, status, isSettled }: Pair): MachineStatus | null {
  if (isOfRun(unit, status)) return status.state !== 'running' && isToEnd(unit) ? status : null
  return isToRun(unit) && isSettled ? lostRun(unit) : null
}

function isInDoubt({ unit, status, isSettled }: Pair): boolean {
  return isToRun(unit) && !isOfRun(unit, status) && !isSettled
}

function isToRun({ state, frozen }: Unit): boolean {
  return state === 'running' || (state === 'sleeping' && frozen)
}

/** Whether the end of its run is not recorded yet. */
function isToEnd(unit: Unit): boolean {
  return isToRun(unit) || unit.state === 'creating' || unit.state === 'starting'
}

type Correction = { id: string; effect: () => Promise<void> }

/**
 * Returns what to do about a machine that runs although its unit says otherwise, after a crash or a late effect; else
 * null.
 */
function correctionOf({ engine }: FleetHost, { unit, status, isSettled }: Pair): Correction | null {
  if (!isSettled || status?.state !== 'running') return null
  const { id, state, frozen } = unit
  // Of any run: of an older one if the next could not be started.
  const ref = { id, generation: status.generation }
  const isUnwanted = state === 'stopped' || (state === 'sleeping' && !frozen)
  if (isUnwanted) return { id, effect: () => engine.stop(ref, STOP_GRACE_MS) }
  if (!isOfRun(unit, status)) return null
  if (state === 'running' && status.frozen) return { id, effect: () => engine.thaw(ref) }
  if (state === 'sleeping' && !status.frozen) return { id, effect: () => engine.freeze(ref) }
  return null
}

async function correct(app: App, { id, effect }: Correction): Promise<void> {
  await logged(app, id, app.activity.operations.run(`correct ${id}`, LONGEST_CORRECTION_MS, effect))
}

async function logged(app: App, unitId: string, work: Promise<void>): Promise<void> {
  await work.catch((error: unknown) => {
    app.log.warn({ err: error, unitId }, 'machine was not reconciled; will be retried')
  })
}
