// Where a machine finds how many forks lie between it and its first ancestor: a file in the directory of the
// helper, which all machines share. There it says 0; who is a fork has a file of its own mounted over it.

import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Paths, RunPaths } from '../paths.ts'
import type { MachineRecord } from '../lifecycle/record.ts'

export async function prepareSharedForkGeneration(paths: Paths): Promise<void> {
  const shared = join(paths.helper, 'fork-generation')
  await writeFile(`${shared}.new`, '0\n', { mode: 0o444 })
  await rename(`${shared}.new`, shared)
}

/**
 * The file to mount for a run. Native machines always have one: what is in the memory of one is restored in a fork
 * only if both have the same mounts. In gVisor each mount costs a start some time, so only forks have it there.
 */
export async function prepareForkGeneration(
  { spec, forkGeneration }: MachineRecord,
  { forkGeneration: path }: RunPaths,
): Promise<string | null> {
  if (spec.isolation === 'gvisor' && forkGeneration === 0) return null
  await writeFile(path, `${forkGeneration}\n`, { mode: 0o644 })
  return path
}
