// A machine's disk: a subvolume with the upper and work layers of its root, limited by a qgroup, and its volume
// likewise; both count against the share of their team (team-shares.ts). A disk survives stop, sleep, crash and
// reboot; only destroy deletes it.

import { existsSync } from 'node:fs'
import { chmod, mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { run, runOrThrow } from '../kernel/programs.ts'
import type { Log } from '../../../lib/log.ts'
import type { MachineSpec } from '../../engine.ts'
import type { StoredImage } from '../images/store.ts'
import type { MachinePaths, Paths } from '../paths.ts'
import { createSubvolume, deleteSubvolume, limitSubvolume } from './btrfs-requests.ts'
import { copyOptions, shareOptions } from './team-shares.ts'
import { nestedSubvolumes } from './subvolumes.ts'
import { unpackVolumeData } from './volume-data.ts'

const GB = 1024 ** 3
const BTRFS_TIMEOUT_MS = 30_000
const NESTED_AT_ONCE = 500

/** This file marks a complete disk; without it the disk is created again. */
const COMPLETE = 'complete'

export async function createDisk(paths: Paths, spec: MachineSpec): Promise<void> {
  const machine = paths.machine(spec.id)
  await Promise.all([
    makeDisk(machine, spec),
    spec.volume ? makeSubvolume(machine.volume, spec, spec.volume.gb, 0o755) : undefined,
  ])
}

/** Puts into the volume what its image has for it. Only for a machine that has never run. */
export async function fillVolume(
  { paths, log }: { paths: Paths; log: Log },
  { id, volume }: MachineSpec,
  { rootfs, build }: StoredImage,
): Promise<void> {
  const data = build?.volumeData
  if (!data || data.mount !== volume?.mount) return
  const why = await unpackVolumeData(paths.machine(id).volume, rootfs, data)
  if (why !== null) log.warn({ machine: id, why }, 'a volume begins without the data of its image')
}

export async function destroyDisk(paths: Paths, id: string): Promise<void> {
  const machine = paths.machine(id)
  await Promise.all([removeSubvolume(machine.disk), removeSubvolume(machine.volume)])
}

/** Returns the ids of machines with a disk or a volume in the pool. */
export async function listDisks(paths: Paths): Promise<string[]> {
  const [disks, volumes] = await Promise.all([readdir(paths.disks), readdir(paths.volumes)])
  return [...new Set([...disks, ...volumes])]
}

/**
 * Snapshots disk and volume of a machine for a copy, as they are at this instant: fast, whatever their size. The copy
 * is incomplete before `completeCopy`. Removes what an earlier attempt made.
 */
export async function snapshotDisk(paths: Paths, source: MachineSpec, copy: string): Promise<void> {
  const [from, to] = [paths.machine(source.id), paths.machine(copy)]
  await Promise.all([
    snapshot(from.disk, to.disk, source),
    source.volume ? snapshot(from.volume, to.volume, source) : undefined,
  ])
}

/**
 * Sets the limits of a copy, which a snapshot does not inherit, and gives it an empty work layer, since the copied
 * one has work in progress of its source. Nothing has run on it yet, and no link is followed.
 */
export async function completeCopy(paths: Paths, spec: MachineSpec): Promise<void> {
  const machine = paths.machine(spec.id)
  await Promise.all([
    limitDisk(machine.disk, spec.size.diskGb),
    spec.volume ? limitDisk(machine.volume, spec.volume.gb) : undefined,
    rm(machine.work, { recursive: true, force: true }).then(() => mkdir(machine.work, { mode: 0o700 })),
  ])
}

async function makeDisk(machine: MachinePaths, spec: MachineSpec): Promise<void> {
  if (existsSync(`${machine.disk}/${COMPLETE}`)) return
  await removeSubvolume(machine.disk)
  await makeSubvolume(machine.disk, spec, spec.size.diskGb, 0o700)
  await Promise.all([mkdir(machine.upper, { mode: 0o755 }), mkdir(machine.work, { mode: 0o700 })])
  await writeFile(`${machine.disk}/${COMPLETE}`, '')
}

async function makeSubvolume(
  path: string,
  { networkGroup }: MachineSpec,
  gb: number,
  mode: number,
): Promise<void> {
  if (!existsSync(path) && !(await createSubvolume(path, networkGroup)))
    await btrfs(['--quiet', 'subvolume', 'create', ...shareOptions(networkGroup), path])
  await limitDisk(path, gb)
  await chmod(path, mode)
}

async function snapshot(from: string, to: string, { networkGroup }: MachineSpec): Promise<void> {
  await removeSubvolume(to)
  await btrfs(['--quiet', 'subvolume', 'snapshot', ...copyOptions(networkGroup), from, to])
}

/** For one subvolume with everything in it. */
export async function limitDisk(path: string, gb: number): Promise<void> {
  if (!(await limitSubvolume(path, gb * GB))) await btrfs(['qgroup', 'limit', `${gb}G`, path])
}

async function removeSubvolume(path: string): Promise<void> {
  if (!existsSync(path) || (await deleteSubvolume(path))) return
  const remove = async () => await btrfs(['--quiet', 'subvolume', 'delete', path])
  try {
    await remove()
  } catch {
    // It may contain others. With more than this the attempt fails, and the next one continues.
    const nested = (await nestedSubvolumes(path)).slice(0, NESTED_AT_ONCE)
    for (const id of nested) await btrfs(['--quiet', 'subvolume', 'delete', '--subvolid', `${id}`, path])
    await remove()
  }
}

/**
 * Removes the qgroups of deleted subvolumes: the kernel allows it only after its cleaner has finished, so it runs now
 * and then, separately from the deletion.
 */
export async function clearStaleQgroups(paths: Paths): Promise<void> {
  await run('btrfs', ['qgroup', 'clear-stale', paths.pool], { timeoutMs: BTRFS_TIMEOUT_MS })
}

async function btrfs(args: string[]): Promise<void> {
  await runOrThrow('btrfs', args, { timeoutMs: BTRFS_TIMEOUT_MS })
}
