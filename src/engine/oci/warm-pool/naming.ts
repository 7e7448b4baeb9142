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
import { HELPER_DIR } from '../storage/mount-points.ts'
import { executable } from '../kernel/executable.ts'
import type { Naming } from '../machine/ready-machine.ts'

/** Beside the helper, which each machine has. */
export const NAMING_PROGRAM = 'name'
/** Far longer than it takes on a busy host. */
const NAMED_WITHIN_MS = 10_000

/** `readelf` and `objdump -D -b binary -m i386:x86-64` show the same. */
const code = [
  '31c0 31ff', //              read(0,
  'be00006000', //               MEMORY,
  'ba40000000 0f05', //          64)
  '85c0 7e12', //              if (eax <= 0) goto failed
  '89c6', //                   sethostname(
  'bf00006000', //               MEMORY, eax)
  'b8aa000000 0f05',
  '89c7', //                   edi = eax
  'eb05', //                   goto exit
  // failed:
  'bf01000000', //             edi = 1
  // exit:
  'b8e7000000 0f05', //        exit_group(edi)
].join('')

export function namingProgram(): Buffer {
  return executable(code)
}

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
    const command = execProcess(main, [`${HELPER_DIR}/${NAMING_PROGRAM}`], { asRoot: true })
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
