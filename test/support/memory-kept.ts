// In which classes this host keeps memory. gVisor's comes with what `BERTH_RUNSC` names, or what Berth has built: Debian's
// keeps none.

import { existsSync, readFileSync } from 'node:fs'
import type { IsolationClass } from '../../src/engine/engine.ts'
import { BUILT_RUNSC } from '../../src/engine/oci/runsc-build/pinned.ts'
import { driverDefaults, type DriverOptions } from '../../src/engine/oci/runtime/driver.ts'
import { hasCriu } from './criu.ts'

const preferredRunsc = process.env.BERTH_RUNSC ?? null

export const testRuntimes: DriverOptions = { ...driverDefaults, preferredRunsc }

export const keepsMemory: Record<IsolationClass, boolean> = {
  runc: hasCriu,
  gvisor: preferredRunsc !== null || existsSync(BUILT_RUNSC),
}

const CAP_SYS_RESOURCE = 1n << 24n
const held = BigInt(
  `0x${/^CapEff:\s+([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0'}`,
)

/** Also that of programs whose user is not root: CRIU needs a capability that not every host grants. */
export const savesOtherUsers: Record<IsolationClass, boolean> = {
  runc: hasCriu && (held & CAP_SYS_RESOURCE) !== 0n,
  gvisor: keepsMemory.gvisor,
}
