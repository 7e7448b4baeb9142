// Gives a sandbox that was made ahead its hostname, which only its create knows, in a millisecond: a process that may set it
// waits in there for the name, and ends once it has set it, before the unit's own process begins. To start that process at the
// create would cost ten times as much. In runc the host sets the name itself.

import { closeSync, openSync, writeSync } from 'node:fs'
import { completesWithin } from '../../../lib/concurrency/completes-within.ts'
import type { EngineContext } from '../machine/context.ts'
import { connectControl, executeNamingOver, runsProbed, waitOver } from '../runtime/control.ts'
import { closeFd, createPipe } from '../kernel/syscalls.ts'
import type { RunPaths } from '../paths.ts'
import { execProcess, type Process } from '../runtime/bundle.ts'
import type { Driver } from '../runtime/driver.ts'
import { namingCommand } from '../machine-programs/name.ts'
import type { Naming } from '../machine/ready-machine.ts'

/** Far longer than it takes on a busy host. */
const NAMED_WITHIN_MS = 10_000

/** Starts the process in a sandbox of gVisor, before it is frozen. `main`: the first process of the machine. */
export async function prepareNaming(
  driver: Driver,
  container: RunPaths['container'],
  main: Process,
): Promise<Naming> {
  const { root, commands } = driver
  const control = await connectControl(root, container)
  const [{ readEnd, writeEnd: input }, nothing] = [createPipe(), openSync('/dev/null', 'r+')]
  try {
    const { program } = commands
    if (control === null || program === null || !runsProbed(control, program))
      throw new Error('its sandbox takes no commands')
    const command = execProcess(main, namingCommand, { asRoot: true })
    const begun = await executeNamingOver(control, container, command, [readEnd, nothing, nothing])
    if (begun.kind !== 'begun') throw new Error('the process that sets its hostname did not begin')
    return { control, input, exitCode: waitOver(control, container, begun.pid) }
  } catch (error) {
    control?.close()
    closeFd(input)
    throw error
  } finally {
    closeFd(readEnd)
    closeSync(nothing)
  }
}

/** Once, and once the machine is thawed. Returns whether the sandbox has the name. */
export async function nameBy(
  { clock }: Pick<EngineContext, 'clock'>,
  { input, exitCode }: Naming,
  hostname: string,
): Promise<boolean> {
  try {
    // A name of at most 63 bytes is one read.
    writeSync(input, hostname)
  } catch {
    // It has no reader: the process has ended.
    return false
  }
  return (await completesWithin(clock, NAMED_WITHIN_MS, exitCode)) && (await exitCode) === 0
}

export function closeNaming({ control, input }: Naming): void {
  control.close()
  closeFd(input)
}
