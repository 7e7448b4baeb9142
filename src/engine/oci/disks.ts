// A machine's disk: a subvolume that holds the upper and work layers of its root, limited by a qgroup, and
// its volume likewise. A disk survives stop, sleep, crash and reboot; only destroy deletes it.

import { existsSync } from 'node:fs'
import { chmod, mkdir, readdir, writeFile } from 'node:fs/promises'
import { run, runOrThrow } from '../../lib/process.ts'
import type { MachineSpec } from '../engine.ts'
import type { MachinePaths, Paths } from './paths.ts'

const BTRFS_TIMEOUT_MS = 30_000

/** The file that says the disk was made to its end; without it the disk is made anew. */
const COMPLETE = 'complete'

/** What a machine finds under /etc from its first start on. Its own from then: it may change them. */
export type EtcFiles = { hostname: string; hosts: string; resolv: string }

export async function createDisk(paths: Paths, spec: MachineSpec): Promise<void> {
  const machine = paths.machine(spec.id)
  await Promise.all([
    makeDisk(machine, spec.size.diskGb),
    spec.volume ? makeSubvolume(machine.volume, spec.volume.gb, 0o755) : undefined,
  ])
}

export async function destroyDisk(paths: Paths, id: string): Promise<void> {
  const machine = paths.machine(id)
  await Promise.all([deleteSubvolume(machine.disk), deleteSubvolume(machine.volume)])
}

/** Ids of machines that have a disk or a volume in the pool. */
export async function listDisks(paths: Paths): Promise<string[]> {
  const [disks, volumes] = await Promise.all([readdir(paths.disks), readdir(paths.volumes)])
  return [...new Set([...disks, ...volumes])]
}

/**
 * Puts the network's files into the upper layer of a disk that has never run: nothing there is hostile yet,
 * so the host may write. A directory of the upper layer hides a link of that name in the image.
 */
export async function writeEtc(machine: MachinePaths, etc: EtcFiles): Promise<void> {
  const directory = `${machine.upper}/etc`
  await mkdir(directory, { recursive: true, mode: 0o755 })
  await Promise.all([
    writeFile(`${directory}/hostname`, etc.hostname),
    writeFile(`${directory}/hosts`, etc.hosts),
    writeFile(`${directory}/resolv.conf`, etc.resolv),
  ])
}

async function makeDisk(machine: MachinePaths, gb: number): Promise<void> {
  if (existsSync(`${machine.disk}/${COMPLETE}`)) return
  await deleteSubvolume(machine.disk)
  await makeSubvolume(machine.disk, gb, 0o700)
  await Promise.all([mkdir(machine.upper, { mode: 0o755 }), mkdir(machine.work, { mode: 0o700 })])
  await writeFile(`${machine.disk}/${COMPLETE}`, '')
}

async function makeSubvolume(path: string, gb: number, mode: number): Promise<void> {
  if (!existsSync(path)) await btrfs(['--quiet', 'subvolume', 'create', path])
  await btrfs(['qgroup', 'limit', `${gb}G`, path])
  await chmod(path, mode)
}

async function deleteSubvolume(path: string): Promise<void> {
  if (!existsSync(path)) return
  await btrfs(['--quiet', 'subvolume', 'delete', path])
}

/**
 * Drops the qgroups that deleted subvolumes left behind: the kernel allows it only after its cleaner is
 * through, so it is done now and then, apart from the deletion.
 */
export async function clearStaleQgroups(paths: Paths): Promise<void> {
  await run('btrfs', ['qgroup', 'clear-stale', paths.pool], { timeoutMs: BTRFS_TIMEOUT_MS })
}

async function btrfs(args: string[]): Promise<void> {
  await runOrThrow('btrfs', args, { timeoutMs: BTRFS_TIMEOUT_MS })
}
