// Ends and signals commands: through their control group if they have one, otherwise through the sandbox.

import { readdir } from 'node:fs/promises'
import type { TerminalSignal } from '../../terminal.ts'
import { driverOf, type EngineContext, type Machine } from '../machine/context.ts'
import { killAll } from '../kernel/cgroups.ts'
import { listChildren, removeChild } from '../kernel/cgroup-children.ts'
import type { RunPaths } from '../paths.ts'
import { reapOrphans } from '../kernel/children.ts'
import { filesOf, loadProcess, markerOf, removeFiles } from './command.ts'
import { signalInsideGvisor } from './signal-in-gvisor.ts'

/**
 * Kills the commands of an earlier engine, whose output and deadlines are no longer handled. A child that a finished
 * command left behind is not killed, and keeps its group.
 */
export async function killAbandonedExecs(
  host: EngineContext,
  machine: Machine,
  paths: RunPaths,
): Promise<void> {
  const files = await readdir(paths.execs).catch((): string[] => [])
  const running = files.flatMap((file) => /^(exec-.+)\.json$/.exec(file)?.[1] ?? [])
  for (const name of running) {
    const forget = async () => {
      // Its description last: as long as it exists, the next engine tries again.
      removeChild(host.cgroups, paths.container, name)
      removeFiles(filesOf(paths, name))
      // It may have become a child of this engine when that one died.
      void reapOrphans()
    }
    killExec(host, machine, paths, name, forget).catch((error: unknown) =>
      host.log.warn({ err: error }, 'abandoned command was not killed'),
    )
  }
  for (const name of listChildren(host.cgroups, paths.container)) {
    if (!running.includes(name)) removeChild(host.cgroups, paths.container, name)
  }
}

/** A command that cannot be killed because its machine is frozen is killed when it is thawed. */
export async function killExec(
  host: EngineContext,
  machine: Machine,
  paths: RunPaths,
  name: string,
  afterwards: () => Promise<void> = async () => {},
): Promise<void> {
  const isKilled = await tryToKill(host, machine, paths, name)
  if (!isKilled && machine.frozen) machine.onThaw.push(() => killExec(host, machine, paths, name, afterwards))
  else await afterwards()
}

async function tryToKill(
  host: EngineContext,
  machine: Machine,
  paths: RunPaths,
  name: string,
): Promise<boolean> {
  const driver = driverOf(host, machine)
  if (driver.execDetaches) return await killAll(host.cgroups, paths.container, name)
  // A frozen sandbox runs no helper.
  if (machine.frozen) return false
  const main = await loadProcess(machine, paths)
  return await signalInsideGvisor(driver, paths.container, markerOf(name), main, paths.execs)
}

/** A sandbox that does not answer is not waited for. */
export async function signalInside(
  host: EngineContext,
  machine: Machine,
  paths: RunPaths,
  name: string,
  signal: TerminalSignal,
): Promise<void> {
  if (machine.frozen) return
  const driver = driverOf(host, machine)
  const main = await loadProcess(machine, paths)
  await signalInsideGvisor(driver, paths.container, markerOf(name), main, paths.execs, signal).catch(
    (error: unknown) => host.log.warn({ err: error }, 'a command was not signalled'),
  )
}
