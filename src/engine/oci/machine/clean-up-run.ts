// Removes what one run leaves on the host, after its end or a failed start. What a crash left over is found by
// lifecycle/recover.ts (`sweepRuns`).

import { allSettled } from '../../../lib/concurrency/all-settled.ts'
import { reapOrphans } from '../kernel/children.ts'
import { killAll, removeCgroup } from '../kernel/cgroups.ts'
import type { EngineContext, Machine } from './context.ts'
import { endMonitor, forgetExit } from '../runtime/monitor.ts'
import { removeTree } from '../kernel/mounts.ts'
import type { RunPaths } from '../paths.ts'
import { forgetContainer } from '../runtime/by-program.ts'

const TRIES = 3
const PAUSE_MS = 200

/** Removes every effect of a run that failed to start, or is over. Idempotent. */
export async function cleanUpRun(host: EngineContext, paths: RunPaths): Promise<void> {
  await host.effect('engine.cleanup.processes', async () => {
    // The monitor first: a runtime that is still creating the container would put processes into the group.
    await endMonitor(paths)
    if (!(await killAll(host.cgroups, paths.container)))
      throw new Error('a process of a run cannot be killed')
  })
  await allSettled([
    host.effect('engine.cleanup.files', async () => {
      await removeTree(paths.dir)
      await forgetExit(paths)
    }),
    host.effect('engine.cleanup.runtime', async () => {
      await forgetContainer(host.paths.runtimeRoot, paths.container)
    }),
    host.effect('engine.cleanup.cgroup', async () => removeCgroup(host.cgroups, paths.container)),
  ])
  void reapOrphans()
}

/**
 * The same for a run of this machine, with its network. Never rejects: a failure is retried at once, by the machine's
 * next start or its destruction, and by the next engine.
 */
export async function cleanUpMachine(host: EngineContext, machine: Machine, paths: RunPaths): Promise<void> {
  const { id } = machine.record.spec
  const removed = await Promise.all([
    retry(host, id, () => cleanUpRun(host, paths)),
    retry(host, id, () => host.effect('engine.cleanup.network', () => host.network.detach(id))),
  ])
  machine.uncleanedRun = removed.every(Boolean) ? null : paths
}

/** Waits until nothing of an earlier run is left, as far as possible. */
export async function waitForCleanup(host: EngineContext, machine: Machine): Promise<void> {
  await machine.cleanup
  if (machine.uncleanedRun) await cleanUpMachine(host, machine, machine.uncleanedRun)
}

/** Returns whether it succeeded in the end. */
export async function retry(
  host: EngineContext,
  machine: string,
  work: () => Promise<void>,
): Promise<boolean> {
  for (let attempt = 1; attempt <= TRIES; attempt += 1) {
    try {
      await work()
      return true
    } catch (error) {
      host.log.error({ err: error, machine, attempt }, 'run cleanup failed')
    }
    if (attempt < TRIES) await host.clock.sleep(PAUSE_MS * attempt)
  }
  return false
}
