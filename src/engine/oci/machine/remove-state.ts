// Removes what a machine has on the host beside its runs: its address, its disk and volume, its record and secrets.

import { allSettled } from '../../../lib/concurrency/all-settled.ts'
import { removeTree } from '../kernel/mounts.ts'
import { forgetSecrets } from '../records/secrets.ts'
import { destroyDisk } from '../storage/disks.ts'
import type { EngineContext } from './context.ts'

/** Removes what a machine without a run has on the host. Unknown ids succeed. */
export async function removeMachineState(host: EngineContext, id: string): Promise<void> {
  await allSettled([
    host.effect('engine.destroy.network', () => host.network.release(id)),
    host.effect('engine.destroy.disk', () => destroyDisk(host.paths, id)),
  ])
  // Last: a disk without a record would be kept.
  await host.effect('engine.destroy.record', async () => {
    forgetSecrets(host.paths, id)
    await allSettled([removeTree(host.paths.machine(id).dir), removeTree(host.paths.asideOf(id))])
  })
}
