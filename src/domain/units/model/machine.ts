// A unit's machine, as the engine knows it.

import type { Size } from '../../../contract/policy.ts'
import type { MachineRef, MachineSize } from '../../../engine/engine.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'

/** The sizes of design 5. */
export const machineSizes = {
  nano: { cpus: 0.25, memoryMb: 256, pids: 512, diskGb: 2 },
  small: { cpus: 0.5, memoryMb: 512, pids: 1024, diskGb: 5 },
  medium: { cpus: 1, memoryMb: 2048, pids: 2048, diskGb: 10 },
  large: { cpus: 2, memoryMb: 4096, pids: 4096, diskGb: 20 },
} as const satisfies Record<Size, MachineSize>

/** Identifies one run of one machine, for calls to the engine. */
export function machineRef({ id, generation }: UnitRecord): MachineRef {
  return { id, generation }
}
