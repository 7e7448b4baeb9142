// Converts the rules of a unit into what the engine enforces.

import type { MachineEgress } from '../../engine/egress.ts'
import { storedEgress } from '../../store/egress.ts'
import type { UnitRecord } from '../../store/unit-record.ts'

/** Null for a unit without rules, of which the engine then knows nothing. */
export function machineEgress({ egress, stackId, stackIsScope }: UnitRecord): MachineEgress | null {
  const isBound = storedEgress(egress) !== null || stackIsScope
  return isBound ? { ...egress, stack: stackId, secrets: [] } : null
}
