// What runs on the host and the database knows nothing of. A unit's row is there before its machine and its generation
// before its run, so the database has forgotten: somebody restored it from an earlier state. Such machines cannot be
// anybody's again, and go; but never without a word to the operator (reliability F15).

import type { App } from '../../app.ts'
import type { MachineStatus } from '../../engine/engine.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { findKnownIds } from '../../store/units.ts'

/** Machines that no unit wants: those of units that are gone, and those of none that ever was. */
export async function reportUnknownMachines(app: App, unwanted: string[]): Promise<void> {
  if (unwanted.length === 0) return
  const known = await findKnownIds(app.db, unwanted)
  for (const unitId of unwanted.filter((id) => !known.has(id))) {
    app.log.error({ alarm: 'database', unitId }, 'a machine of no unit the database knows is removed')
  }
}

/** A run that its unit has not come to. */
export function reportUnknownRun(
  app: App,
  { id, generation }: Pick<UnitRecord, 'id' | 'generation'>,
  status: MachineStatus,
): void {
  if (status.state !== 'running' || status.generation <= generation) return
  const runs = { known: generation, found: status.generation }
  app.log.error({ alarm: 'database', unitId: id, ...runs }, 'a run the database knows nothing of is ended')
}
