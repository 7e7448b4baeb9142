// A unit's machine: what the engine is told of the unit.

import type { Size } from '../../../contract/policy.ts'
import type { MachineRef, MachineSize } from '../../../engine/engine.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'

/** Design 5. */
export const machineSizes = {
  nano: { cpus: 0.25, memoryMb: 256, pids: 512, diskGb: 2 },
  small: { cpus: 0.5, memoryMb: 512, pids: 1024, diskGb: 5 },
  medium: { cpus: 1, memoryMb: 2048, pids: 2048, diskGb: 10 },
  large: { cpus: 2, memoryMb: 4096, pids: 4096, diskGb: 20 },
} as const satisfies Record<Size, MachineSize>

/** What an effect is addressed to: this run of this machine, and nothing more of the unit. */
export function machineRef({ id, generation }: UnitRecord): MachineRef {
  return { id, generation }
}
