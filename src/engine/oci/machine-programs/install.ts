// The programs of ours that every machine sees in one read-only directory: the shell and tools of our commands, and what waits
// or passes output on inside.

import { copyFile, mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Paths } from '../paths.ts'
import { FORK } from './fork.ts'
import { HOLD } from './hold.ts'
import { NAME } from './name.ts'
import { builtProgram } from './program.ts'
import { RELAY } from './relay.ts'
import { START } from './start.ts'
import { WAIT } from './wait.ts'
import { WATCH } from './watch.ts'

const programs: [name: string, mode: number][] = [
  // Of a program that its user cannot read, the kernel lets no other process look into a process.
  [FORK, 0o711],
  [HOLD, 0o755],
  [NAME, 0o755],
  [RELAY, 0o755],
  [START, 0o755],
  [WAIT, 0o755],
  [WATCH, 0o755],
]

/** Statically linked: it works in any image. */
const BUSYBOX = '/bin/busybox'

/** Writes them, each whole: machines of an earlier engine may be running one. */
export async function installMachinePrograms({ helper }: Pick<Paths, 'helper'>): Promise<void> {
  // Machines see this directory, with users of any id.
  await mkdir(helper, { recursive: true, mode: 0o755 })
  const busybox = join(helper, 'busybox')
  await copyFile(BUSYBOX, `${busybox}.new`)
  await rename(`${busybox}.new`, busybox)
  for (const [name, mode] of programs) {
    const program = join(helper, name)
    await writeFile(`${program}.new`, await builtProgram(name), { mode })
    await rename(`${program}.new`, program)
  }
}
