// What a run leaves on the host, removed in one place: after its end, after a failed start, after a crash.

import { reapOrphans } from '../exec/children.ts'
import { killAll, removeCgroup } from '../kernel/cgroups.ts'
import type { Host, Machine } from '../context.ts'
import { endMonitor, forgetExit } from '../runtime/monitor.ts'
import { removeTree } from '../kernel/mounts.ts'
import type { RunPaths } from '../paths.ts'
import { forgetContainer } from '../runtime/runtime.ts'

const TRIES = 3
const PAUSE_MS = 200

/** Removes every effect of a run that never came to be, or is over. Idempotent. */
export async function takeBack(host: Host, paths: RunPaths): Promise<void> {
  await host.effect('engine.remains.processes', async () => {
    // The monitor first: a runtime that is still making the container would put processes into the group.
    await endMonitor(paths)
    if (!(await killAll(host.cgroups, paths.container)))
      throw new Error('a process of a run cannot be killed')
  })
  await host.effect('engine.remains.runtime', async () => {
    await forgetContainer(host.paths.runtimeRoot, paths.container)
  })
  await host.effect('engine.remains.cgroup', async () => removeCgroup(host.cgroups, paths.container))
  await host.effect('engine.remains.files', async () => {
    await removeTree(paths.dir)
    await forgetExit(paths)
  })
  void reapOrphans()
}

/**
 * The same for a run that was this machine's, with its network. Never rejects: what cannot be removed now is
 * tried again at once, by the machine's next start or its destruction, and by the next engine.
 */
export async function removeRemains(host: Host, machine: Machine, paths: RunPaths): Promise<void> {
  const { id } = machine.record.spec
  const removed = await Promise.all([
    tryAgain(host, id, () => takeBack(host, paths)),
    tryAgain(host, id, () => host.effect('engine.remains.network', () => host.network.detach(id))),
  ])
  machine.unclean = removed.every(Boolean) ? null : paths
}

/** Waits until nothing of an earlier run is left, as far as that can be had. */
export async function untilClean(host: Host, machine: Machine): Promise<void> {
  await machine.cleanup
  if (machine.unclean) await removeRemains(host, machine, machine.unclean)
}

/** Whether it succeeded in the end. */
export async function tryAgain(host: Host, machine: string, work: () => Promise<void>): Promise<boolean> {
  for (let attempt = 1; attempt <= TRIES; attempt += 1) {
    try {
      await work()
      return true
    } catch (error) {
      host.log.error({ err: error, machine, attempt }, 'what a run left was not put in order')
    }
    if (attempt < TRIES) await host.clock.sleep(PAUSE_MS * attempt)
  }
  return false
}
