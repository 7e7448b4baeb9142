// Removes what a machine has on the host beside its runs: its address, its disk and volume, its record and secrets.

import { removeTree } from '../kernel/mounts.ts'
import { forgetSecrets } from '../records/secrets.ts'
import { destroyDisk } from '../storage/disks.ts'
import type { EngineContext } from './context.ts'

/** Removes what a machine without a run has on the host. Unknown ids succeed. */
export async function removeMachineState(host: EngineContext, id: string): Promise<void> {
  await host.effect('engine.destroy.network', () => host.network.release(id))
  await host.effect('engine.destroy.disk', () => destroyDisk(host.paths, id))
  await host.effect('engine.destroy.record', async () => {
    forgetSecrets(host.paths, id)
    await removeTree(host.paths.machine(id).dir)
    await removeTree(host.paths.asideOf(id))
  })
}
