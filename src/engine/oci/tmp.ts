// gVisor lays a file system in memory over an empty /tmp unless something is mounted there: whatever a unit
// keeps in /tmp would be gone at its next sleep, and count against its memory until then. So the root's own
// /tmp is mounted onto itself.

import { makeInTree, pathInTree } from './unit-tree.ts'

/**
 * The directory to mount, made where an image has none. Null where the machine has put something else in its
 * place. Call it while nothing of the machine runs.
 */
export async function prepareTmp(rootfs: string): Promise<string | null> {
  const real = await makeInTree(rootfs, '/tmp', 0o1777).catch(() => null)
  return real === '/tmp' ? pathInTree(rootfs, real) : null
}
