// An engine in a process of its own, that a failpoint can kill: see engine-process.ts, which starts it.

import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { correctTimes } from '../../src/engine/corrected-times.ts'
import type { Engine } from '../../src/engine/engine.ts'
import { openEpochs } from '../../src/engine/epochs.ts'
import { openOciEngine } from '../../src/engine/oci/oci-engine.ts'
import { serveEngine } from '../../src/engine/ipc/server.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { fileFailpoints } from '../../src/lib/failpoints.ts'
import { silentLog } from '../../src/lib/log.ts'
import type { EngineProcessInput } from './engine-process.ts'

const [line] = (await once(createInterface({ input: process.stdin }), 'line')) as [string]
const { options, socketPath, failpointsDir, tls, aheadMs } = JSON.parse(line) as EngineProcessInput
const oci = await openOciEngine({
  ...options,
  egress: { ...options.egress, onNeeded: () => {} },
  onProgress: () => {},
  log: silentLog,
  clock: systemClock,
  failpoints: fileFailpoints(failpointsDir),
})
const engine = aheadMs === 0 ? oci : aheadBy(aheadMs, oci)
const epochs = await openEpochs(join(options.dataDir, 'engine.epoch'))
const server = await serveEngine({ engine, epochs, socketPath, socketGid: 0, tls, log: silentLog })
process.stdout.write('ready\n')
await once(process, 'SIGTERM')
await server.close()
await oci.close()
process.exit(0)

/** As the engine of a machine whose clock is ahead: the kernel's clock, which says when a run ended, is this machine's. */
function aheadBy(ms: number, engine: Engine): Engine {
  const shifted = correctTimes(engine, () => -ms)
  const capacity = async () => {
    const said = await engine.capacity()
    return { ...said, host: said.host && { ...said.host, nowMs: said.host.nowMs + ms } }
  }
  return new Proxy(shifted, {
    get: (target, name: keyof Engine) => (name === 'capacity' ? capacity : target[name]),
  })
}
