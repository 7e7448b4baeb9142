// gVisor lays a file system in memory over an empty /tmp unless something is mounted there: whatever a unit
// keeps in /tmp would be gone at its next sleep, and count against its memory until then. So the root's own
// /tmp is mounted onto itself.

import { chmod, lstat, mkdir } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * The directory to mount, made where an image has none. Null where the machine has put something else in its
 * place: no link of its making is followed on the host. Call it while nothing of the machine runs.
 */
export async function prepareTmp(rootfs: string): Promise<string | null> {
  const path = join(rootfs, 'tmp')
  const found = await lstat(path).catch(() => null)
  if (found) return found.isDirectory() ? path : null
  await mkdir(path)
  await chmod(path, 0o1777)
  return path
}
