// Mounts that a killed program has left in a directory of ours: the root of a restore, the control groups as CRIU
// sees them. Mounted files are not ours to remove, so mounts are removed before files.

import { readFileSync } from 'node:fs'
import { realpath, rm } from 'node:fs/promises'
import { detachMount } from './syscalls.ts'

/** Removes a directory with its content, but nothing of what is mounted there. Succeeds if it does not exist. */
export async function removeTree(directory: string): Promise<void> {
  const path = await realpath(directory).catch(() => null)
  if (path === null) return
  const mounted = mountsIn(path)
  // The newest first, since it may be mounted on another.
  for (const point of mounted.toReversed()) detachMount(point)
  // The table is long on a host with many machines: it is read again only if there was a mount.
  const [left] = mounted.length === 0 ? [] : mountsIn(path)
  if (left !== undefined) throw new Error(`${left} is still mounted`)
  await rm(path, { recursive: true, force: true })
}

/** The kernel lists them by their real paths, with blanks in octal. */
function mountsIn(path: string): string[] {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => (line.split(' ')[4] ?? '').replaceAll(/\\([0-7]{3})/g, (_, code: string) => byteOf(code)))
    .filter((point) => point === path || point.startsWith(`${path}/`))
}

function byteOf(octal: string): string {
  return String.fromCodePoint(Number.parseInt(octal, 8))
}
