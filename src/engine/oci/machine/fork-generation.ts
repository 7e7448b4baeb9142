// The number of forks between a machine and its first ancestor, in a file beside the helper. All machines share a file that
// says 0; a fork has its own file mounted over it.

import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Paths, RunPaths } from '../paths.ts'
import type { MachineRecord } from '../records/record.ts'
import { traitsOf } from '../traits.ts'

export async function prepareSharedForkGeneration(paths: Paths): Promise<void> {
  const shared = join(paths.helper, 'fork-generation')
  await writeFile(`${shared}.new`, '0\n', { mode: 0o444 })
  await rename(`${shared}.new`, shared)
}

/**
 * Returns the file to mount for a run. Where memory is kept all machines have one, because it can be restored in a fork only
 * if both have the same mounts. Otherwise, where each mount slows a start, only forks have it. Each run has a file of its own:
 * CRIU restores a file of the helper's directory, which is mounted too, as one that the machine may write.
 */
export async function prepareForkGeneration(
  { spec, forkGeneration }: Pick<MachineRecord, 'spec' | 'forkGeneration'>,
  { forkGeneration: path }: RunPaths,
  keepsMemory: boolean,
): Promise<string | null> {
  if (traitsOf(spec).mountsSlowly && forkGeneration === 0 && !keepsMemory) return null
  await writeFile(path, `${forkGeneration}\n`, { mode: 0o644 })
  return path
}
