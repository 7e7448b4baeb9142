// Records processes that ended by themselves, and machines that the host lost or killed (spec 3). The engine reports
// each at least once; an end that the service asked for, or of an earlier run, changes nothing here.

import type { App } from '../../../app.ts'
import { nextState } from '../../../contract/states.ts'
import type { MachineStatus } from '../../../engine/engine.ts'
import { findHeartbeat } from '../../../store/heartbeats.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { findUnitOfAnyTeam } from '../../../store/units.ts'
import { HOST_LOST } from '../../hosts/away.ts'
import { retryOnConflict } from './retry-on-conflict.ts'
import { followReports } from '../../hosts/follow-reports.ts'
import { transition } from './transition.ts'

export async function recordExit(app: App, status: MachineStatus): Promise<void> {
  if (status.state !== 'exited' && status.state !== 'lost') return
  await retryOnConflict(async () => {
    const unit = await findUnitOfAnyTeam(app.db, { id: status.id, now: app.clock.now() })
    if (!unit || !concerns(unit, status)) return true
    return (await move(app, unit, status)) || null
  })
}

/** Whether the end of this run changes the unit as it is now. */
function concerns(unit: UnitRecord, status: MachineStatus): boolean {
  if (unit.generation !== status.generation) return false
  // It died while asleep, and the wake in progress starts it again.
  if (unit.state === 'starting' && unit.frozen) return false
  // It was frozen and is gone: its unit keeps sleeping, and wakes by a start.
  const isAsleep = unit.state === 'sleeping' && unit.frozen
  const hasExited = status.state === 'exited' && status.exit?.byHost !== true
  return nextState(unit, isAsleep ? 'hibernated' : hasExited ? 'exited' : 'lost') !== null
}

async function move(app: App, unit: UnitRecord, { exit }: MachineStatus): Promise<boolean> {
  if (unit.state === 'sleeping') return (await transition(app, unit, 'hibernated')) !== null
  if (!exit) return await moveLost(app, unit)
  if (exit.byHost) return (await transition(app, unit, 'lost', { endedAt: exit.at })) !== null
  const lastExit = { code: exit.code, oomKilled: exit.oomKilled, at: exit.at.toISOString() }
  // If it was never ready, no start was recorded; a caller that waits needs to know where to look.
  const early = { startedAt: unit.changedAt, error: endedEarly(unit, exit.code) }
  const moved = await transition(app, unit, 'exited', {
    endedAt: exit.at,
    set: { lastExit, ...(unit.state === 'running' ? {} : early) },
  })
  return moved !== null
}

function endedEarly({ id }: UnitRecord, code: number): string {
  return `The unit's process ended with code ${code} before it was ready. GET /v1/units/${id}/logs shows its output.`
}

/** The time of its end is unknown: it was alive at the last heartbeat, and is billed up to then. */
async function moveLost(app: App, unit: UnitRecord): Promise<boolean> {
  const last = await findHeartbeat(app.db, unit.hostId)
  const isGivenUp = app.fleet.find(unit.hostId)?.isLost === true
  const moved = await transition(app, unit, 'lost', {
    ...(last ? { endedAt: last.at } : {}),
    ...(isGivenUp ? { set: { error: HOST_LOST } } : {}),
  })
  return moved !== null
}

/** Asks the engine how this run ended, after an operation found it not running. */
export async function recordEndOf(app: App, unit: UnitRecord): Promise<void> {
  const statuses = await app.fleet.engineOf(unit).list()
  const status = statuses.find(({ id }) => id === unit.id)
  await recordExit(app, isOfRun(unit, status) ? status : lostRun(unit))
}

type Run = { id: string; generation: number }

/** Whether the status is of this run; a machine that was never started is `created`. */
export function isOfRun(unit: Run, status: MachineStatus | undefined): status is MachineStatus {
  return status?.generation === unit.generation && status.state !== 'created'
}

/** The status of a run that the engine does not know. */
export function lostRun({ id, generation }: Run): MachineStatus {
  return { id, generation, state: 'lost', frozen: false, exit: null, address: '' }
}

/** Follows the reports of all engines until the signal aborts, across restarts of an engine. */
export async function watchExits(app: App, signal: AbortSignal): Promise<void> {
  const onExit = (status: MachineStatus) => {
    recordExit(app, status).catch((error: unknown) => {
      // The reconciler (units/reconcile.ts) finds what is missed here.
      app.log.error({ err: error, unitId: status.id }, 'exit could not be recorded')
    })
  }
  await followReports(app, 'exits', (engine, until) => engine.watchExits(onExit, until), signal)
}
