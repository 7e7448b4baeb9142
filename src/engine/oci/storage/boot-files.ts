// Writes boot files into a root that no process uses yet, at each start without restored memory. The content of the
// root is the machine's own, including planted links: see unit-tree.ts.

import { EngineError } from '../../errors.ts'
import { inTheWay } from './in-the-way.ts'
import { writeInTree } from '../kernel/unit-tree.ts'

export async function writeBootFiles(
  rootfs: string,
  files: { path: string; content: Buffer }[],
  signal: AbortSignal,
): Promise<void> {
  for (const { path, content } of files) {
    if (signal.aborted) throw new EngineError('unknown_machine', 'The machine is being destroyed.')
    try {
      await writeInTree(rootfs, path, content, modeOf(content))
    } catch (cause) {
      throw inTheWay(`The boot file ${path} cannot be written`, cause)
    }
  }
}

/** A boot file that names its interpreter is executable. */
function modeOf(content: Buffer): number {
  return content.subarray(0, 2).toString('latin1') === '#!' ? 0o755 : 0o644
}
