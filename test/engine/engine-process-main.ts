// An engine in a process of its own, that a failpoint can kill: see engine-process.ts, which starts it.

import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { openEpochs } from '../../src/engine/epochs.ts'
import { openOciEngine } from '../../src/engine/oci/oci-engine.ts'
import { serveEngine } from '../../src/engine/ipc/server.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { fileFailpoints } from '../../src/lib/failpoints.ts'
import { silentLog } from '../../src/lib/log.ts'
import type { EngineProcessInput } from './engine-process.ts'

const [line] = (await once(createInterface({ input: process.stdin }), 'line')) as [string]
const { options, socketPath, failpointsDir } = JSON.parse(line) as EngineProcessInput
const engine = await openOciEngine({
  ...options,
  egress: { ...options.egress, onNeeded: () => {} },
  onProgress: () => {},
  log: silentLog,
  clock: systemClock,
  failpoints: fileFailpoints(failpointsDir),
})
const epochs = await openEpochs(join(options.dataDir, 'engine.epoch'))
const server = await serveEngine({ engine, epochs, socketPath, socketGid: 0, log: silentLog })
process.stdout.write('ready\n')
await once(process, 'SIGTERM')
await server.close()
await engine.close()
process.exit(0)
