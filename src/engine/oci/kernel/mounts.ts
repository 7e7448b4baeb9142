// Mounts that a program which was killed has left in a directory of ours: the root of a restoration, the control
// groups as CRIU sees them. What is mounted there is not ours to remove, so mounts go before files do.

import { readFileSync } from 'node:fs'
import { realpath, rm } from 'node:fs/promises'
import { detachMount } from './syscalls.ts'

/** Removes a directory with everything in it, and nothing of what is mounted there. Being absent is fine. */
export async function removeTree(directory: string): Promise<void> {
  const path = await realpath(directory).catch(() => null)
  if (path === null) return
  const mounted = mountsIn(path)
  // The newest first: it may lie on another.
  for (const point of mounted.toReversed()) detachMount(point)
  // The table is long on a host with many machines: read again only where there was something.
  const [left] = mounted.length === 0 ? [] : mountsIn(path)
  if (left !== undefined) throw new Error(`${left} is still mounted`)
  await rm(path, { recursive: true, force: true })
}

/** The kernel names them by the paths they really have, with blanks in octal. */
function mountsIn(path: string): string[] {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => (line.split(' ')[4] ?? '').replaceAll(/\\([0-7]{3})/g, (_, code: string) => byteOf(code)))
    .filter((point) => point === path || point.startsWith(`${path}/`))
}

function byteOf(octal: string): string {
  return String.fromCodePoint(Number.parseInt(octal, 8))
}
