// Copies of disks and volumes as files, for backups: snapshots in btrfs's send format, which is complete and as large
// as its data.

import { existsSync } from 'node:fs'
import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { HOUR } from '../../../lib/clock.ts'
import { tryLock } from '../../../lib/file-lock.ts'
import { run, runOrThrow } from '../kernel/programs.ts'
import { limitDisk } from './disks.ts'
import { isReadyName, type Paths } from '../paths.ts'

const kinds = ['disks', 'volumes'] as const
type Kind = (typeof kinds)[number]
export type Snapshot = { kind: Kind; id: string }

/** Removes snapshots of an interrupted backup. A backup in progress holds a lock. */
export async function removeAbandonedSnapshots(paths: Paths): Promise<void> {
  const lock = await tryLock(paths.backupLock)
  if (lock === null) return
  await removeSnapshots(paths)
  await lock.release()
}

export async function removeSnapshots(paths: Paths): Promise<void> {
  for (const kind of kinds) {
    const directory = join(paths.snapshots, kind)
    for (const id of await readdir(directory).catch(() => []))
      await btrfs(['--quiet', 'subvolume', 'delete', join(directory, id)])
  }
}

/** Snapshots every disk and volume as it is now, one right after the other. */
export async function takeSnapshots(paths: Paths): Promise<Snapshot[]> {
  await removeSnapshots(paths)
  const named = await Promise.all(
    kinds.map(async (kind) => {
      await mkdir(join(paths.snapshots, kind), { recursive: true, mode: 0o700 })
      const ids = (await readdir(paths[kind])).filter((id) => !isReadyName(id))
      return ids.map((id) => ({ kind, id }))
    }),
  )
  // Disk and volume of a unit right after each other, so that both are of the same moment.
  const all = named.flat().toSorted((a, b) => a.id.localeCompare(b.id))
  const taken: Snapshot[] = []
  for (const { kind, id } of all) {
    const copied = ['snapshot', '-r', join(paths[kind], id), join(paths.snapshots, kind, id)]
    const { exitCode, stderr } = await run('btrfs', ['--quiet', 'subvolume', ...copied], {
      timeoutMs: 12 * HOUR,
    })
    if (exitCode === 0) taken.push({ kind, id })
    // One that was destroyed meanwhile is left out.
    else if (existsSync(join(paths[kind], id))) throw new Error(`A disk cannot be copied: ${stderr}`)
  }
  return taken
}

/** Writes each snapshot into its own file, `<directory>/<kind>/<id>`. */
export async function sendSnapshots(paths: Paths, taken: Snapshot[], directory: string): Promise<void> {
  for (const kind of kinds) await mkdir(join(directory, kind), { mode: 0o700 })
  for (const { kind, id } of taken)
    await btrfs(['--quiet', 'send', '-f', join(directory, kind, id), join(paths.snapshots, kind, id)])
}

/** Creates disks and volumes from such files in an empty pool. `gbOf`: their limits; null if unknown. */
export async function receiveDisks(
  paths: Paths,
  directory: string,
  gbOf: (kind: Kind, id: string) => number | null,
): Promise<void> {
  for (const kind of kinds) {
    const into = join(paths.snapshots, kind)
    await mkdir(into, { recursive: true, mode: 0o700 })
    for (const id of await readdir(join(directory, kind))) {
      await btrfs(['--quiet', 'receive', '-f', join(directory, kind, id), into])
      await btrfs(['--quiet', 'subvolume', 'snapshot', join(into, id), join(paths[kind], id)])
      const gb = gbOf(kind, id)
      if (gb !== null) await limitDisk(join(paths[kind], id), gb)
    }
  }
  await removeSnapshots(paths)
}

export function hasPool(paths: Paths): boolean {
  return existsSync(paths.disks)
}

async function btrfs(args: string[]): Promise<void> {
  await runOrThrow('btrfs', args, { timeoutMs: 12 * HOUR })
}
