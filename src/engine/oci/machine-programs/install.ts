// The programs of ours that every machine sees in one read-only directory: the shell and tools of our commands, and what waits
// or passes output on inside.

import { copyFile, mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { FORKING_PROGRAM, forkingProgram } from '../exec/forking-program.ts'
import type { Paths } from '../paths.ts'
import { builtProgram } from './program.ts'
import { RELAY } from './relay.ts'
import { START } from './start.ts'
import { NAMING_PROGRAM, namingProgram } from '../warm-pool/naming.ts'
import { waitingProgram } from '../warm-pool/program.ts'
import { WAITING_PROGRAM } from '../warm-pool/ready.ts'
import { WATCHER } from '../exec/watch-files.ts'

/** Statically linked: it works in any image. */
const BUSYBOX = '/bin/busybox'

/** Writes them, each whole: machines of an earlier engine may be running one. */
export async function installMachinePrograms({ helper }: Pick<Paths, 'helper'>): Promise<void> {
  // Machines see this directory, with users of any id.
  await mkdir(helper, { recursive: true, mode: 0o755 })
  const busybox = join(helper, 'busybox')
  await copyFile(BUSYBOX, `${busybox}.new`)
  await rename(`${busybox}.new`, busybox)
  for (const [name, bytes, mode] of [
    [WAITING_PROGRAM, waitingProgram(), 0o755],
    [NAMING_PROGRAM, namingProgram(), 0o755],
    // Of a program that its user cannot read, the kernel lets no other process look into a process.
    [FORKING_PROGRAM, forkingProgram(), 0o711],
    [RELAY, await builtProgram(RELAY), 0o755],
    [START, await builtProgram(START), 0o755],
    [WATCHER, await builtProgram(WATCHER), 0o755],
  ] as const) {
    const program = join(helper, name)
    await writeFile(`${program}.new`, bytes, { mode })
    await rename(`${program}.new`, program)
  }
}
