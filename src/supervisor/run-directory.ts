// The run directory belongs to one data directory. A copy of a data directory has the same instance id, so all its
// names on the host would collide with those of the original: it must not start next to it.

import { mkdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type FileLock, lockFile } from '../lib/file-lock.ts'
import { readIfThere } from '../lib/read-if-there.ts'
import { findInstance, type Instance, runDirOf } from './instance.ts'

/** Throws a sentence, without changing anything, if another data directory has it. */
export async function lockRunDirectory(instance: Instance, dataDir: string): Promise<FileLock> {
  const runDir = runDirOf(instance)
  const path = join(runDir, 'lock')
  const before = await readIfThere(path)
  await refuseOthers(instance, dataDir, before)
  await mkdir(runDir, { recursive: true })
  const lock = await lockFile(path, `${process.pid} ${dataDir}`)
  if ('owner' in lock) throw new Error(isTaken(instance, lock.owner))
  // Its last holder may have removed the directory since the file was opened.
  const [ours, there] = await Promise.all([lock.file.stat(), stat(path).catch(() => null)])
  if (ours.ino === there?.ino) return lock
  await lock.release()
  throw new Error(`Another process removed ${runDir} during the start: start Berth again.`)
}

/** When the last machine is gone, nothing of the instance remains on the host outside of its data directory. */
export async function removeRunDirectory(runDir: string): Promise<void> {
  await rm(runDir, { recursive: true, force: true })
}

/** Units outlive their supervisor, so the directory may be in use although no process holds the lock. */
async function refuseOthers(instance: Instance, dataDir: string, before: string | null): Promise<void> {
  const other = before?.replace(/^\d+ /, '')
  if (!other || (await isSameDirectory(other, dataDir))) return
  const there = await findInstance(other).catch(() => null)
  if (there?.id === instance.id) throw new Error(isTaken(instance, before ?? ''))
}

async function isSameDirectory(one: string, other: string): Promise<boolean> {
  const [a, b] = await Promise.all([one, other].map((path) => stat(path).catch(() => null)))
  return a !== null && a?.ino === b?.ino && a?.dev === b?.dev
}

function isTaken({ id }: Instance, owner: string): string {
  const [pid, dataDir] = [owner.split(' ')[0], owner.replace(/^\d+ /, '')]
  return (
    `The instance ${id} is that of ${dataDir} (last started as process ${pid}), and its units may be running: this data ` +
    `directory is a copy of it. Stop that one and move its directory away to go on with this copy, or give the copy to another host.`
  )
}
