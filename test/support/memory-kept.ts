// In which classes this host keeps memory. `BERTH_RUNSC`: a gVisor to use instead of Debian's, which keeps none.

import type { IsolationClass } from '../../src/engine/engine.ts'
import { driverDefaults, type DriverOptions } from '../../src/engine/oci/runtime/driver.ts'
import { hasCriu } from './criu.ts'

const runsc = process.env.BERTH_RUNSC

export const testRuntimes: DriverOptions = runsc === undefined ? driverDefaults : { ...driverDefaults, runsc }

export const keepsMemory: Record<IsolationClass, boolean> = { runc: hasCriu, gvisor: runsc !== undefined }
