// Machines and runs that the database does not know. A unit's row exists before its machine, its generation before
// its run, and rows are kept; so the database was restored from an older backup or replaced. Such machines are put
// aside, where the engine keeps them for a while, and each is logged as an alarm (reliability F15, F30).

import type { App } from '../../../app.ts'
import type { MachineStatus } from '../../../engine/engine.ts'
import type { FleetHost } from '../../../engine/fleet.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { findKnownIds } from '../../../store/units.ts'

/**
 * Of the machines on a host that no unit needs there, returns those whose unit never existed or is on another host. The
 * others belong to destroyed units.
 */
export async function findUnknownMachines(app: App, host: FleetHost, unwanted: string[]): Promise<string[]> {
  if (unwanted.length === 0) return []
  const known = await findKnownIds(app.db, unwanted, { hostId: host.id })
  return unwanted.filter((id) => !known.has(id))
}

/** The engine ends the machine and keeps it. */
export async function putMachineAside(app: App, host: FleetHost, unitId: string): Promise<void> {
  app.log.error({ alarm: 'database', unitId }, 'machine of an unknown unit is put aside')
  await host.engine.putAside(unitId)
}

/** Logs a run that is newer than its unit's generation. */
export function reportUnknownRun(
  app: App,
  { id, generation }: Pick<UnitRecord, 'id' | 'generation'>,
  status: MachineStatus,
): void {
  if (status.state !== 'running' || status.generation <= generation) return
  const runs = { known: generation, found: status.generation }
  app.log.error({ alarm: 'database', unitId: id, ...runs }, 'run that the database does not know is ended')
}
