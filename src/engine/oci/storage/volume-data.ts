// Data that a new volume begins with, out of a built-in image (builtin.ts). It is unpacked here, before anything of a unit
// runs, because a sandbox takes seconds to do it.
//
// By plain tar: the archive is from a build of ours, which is all that can name one (`BuildRecord`), of Debian's packages;
// no unit or registry has written to it. Nothing of a unit has been in the volume either, so no link leads out of it.

import { chown, mkdir, readdir, rename, rm, stat } from 'node:fs/promises'
import { run, runOrThrow } from '../kernel/programs.ts'
import type { VolumeData } from '../images/builtin.ts'
import { pathInTree } from '../kernel/unit-tree.ts'

const UNPACK_TIMEOUT_MS = 30_000
const SYNC_TIMEOUT_MS = 60_000
const MAX_REASON = 300

/**
 * Returns once it is on the disk, the volume being its owner's, or why it was not unpacked: then the volume is empty, and the
 * unit does it by itself, or says that the disk of its team is full. Until it is whole it has another name. Does nothing to
 * a volume with anything else in it.
 */
export async function unpackVolumeData(
  volume: string,
  rootfs: string,
  { archive, directory }: VolumeData,
): Promise<string | null> {
  const making = `${directory}.making`
  if ((await readdir(volume)).some((name) => name !== making)) return null
  const at = pathInTree(volume, making)
  await rm(at, { recursive: true, force: true })
  await mkdir(at, { mode: 0o700 })
  const from = ['--file', pathInTree(rootfs, archive), '--force-local']
  const unpacked = await run('tar', ['--extract', '--touch', '--numeric-owner', ...from, '--directory', at], {
    timeoutMs: UNPACK_TIMEOUT_MS,
  })
  if (unpacked.exitCode !== 0) {
    await rm(at, { recursive: true })
    return unpacked.timedOut ? 'it took too long' : unpacked.stderr.slice(-MAX_REASON)
  }
  const { uid, gid } = await stat(at)
  await chown(volume, uid, gid)
  await rename(at, pathInTree(volume, directory))
  // With its name, before the machine has a record. All at once, for there are a thousand files; a unit in a sandbox cannot
  // sync those that it has not opened.
  await runOrThrow('sync', ['--file-system', volume], { timeoutMs: SYNC_TIMEOUT_MS })
  return null
}
