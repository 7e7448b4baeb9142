// What the runtime starts in a machine ahead of commands: its forker (forker.ts), or a standby where there is none.

import { writeFile } from 'node:fs/promises'
import { driverOf, type EngineContext, type Machine } from '../machine/context.ts'
import { atExpenseOf } from '../kernel/team-groups.ts'
import { waitForChild } from '../kernel/children.ts'
import { aheadOf, commandGroup, filesOf, loadProcess, newExecName } from './command.ts'
import { readPid } from './launch.ts'
import { launchedWithin, type Start, type StartedExec } from '../runtime/start-exec.ts'
import type { StandbyKind } from '../machine/standbys.ts'

export type Ahead = { name: string; generation: number; start: Start }

/** In the place of what could not be started, until that is removed. */
export const NOTHING_RUNS = { pid: 0, exited: Promise.resolve(null) }

/** Names it, says in its file what the runtime is to start, and makes its group. */
export async function describeAhead(
  host: EngineContext,
  machine: Machine,
  kind: StandbyKind,
  args: string[],
): Promise<Ahead> {
  const { spec, generation } = machine.record
  const paths = host.paths.run(spec.id, generation)
  const name = newExecName()
  const files = filesOf(paths, name)
  const described = aheadOf(await loadProcess(machine, paths), kind, args)
  await writeFile(files.processFile, JSON.stringify(described), { mode: 0o600 })
  const driver = driverOf(host, machine)
  const charge = atExpenseOf(host.cgroups, spec.networkGroup)
  const cgroupChild = commandGroup(host, paths, name)
  return {
    name,
    generation,
    start: { driver, charge, paths, files, cgroupChild, launching: machine.launching },
  }
}

/** Returns what the runtime has started, and waits for its end from then on; null if it could not start it. */
export async function untilRunning(
  { driver, files }: Start,
  launched: Pick<StartedExec, 'launcher' | 'launched'>,
): Promise<StartedExec['running']> {
  const code = await launchedWithin(launched, driver.deadlineMs)
  const pid = code === 0 ? readPid(files.pidFile) : null
  return pid === null ? null : { pid, exited: waitForChild(pid) }
}
