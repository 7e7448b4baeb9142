// The disk pool: one btrfs file system in a file (its space: pool-watch.ts), so that every machine's disk is a
// subvolume with a limit, and a fork a snapshot (design 3). Images are outside of it: two subvolumes of one btrfs
// reuse inode numbers, and an overlay with both layers there would confuse files.

import { existsSync, readFileSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, stat, statfs, truncate, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { runOrThrow } from '../kernel/programs.ts'
import { EngineError } from '../../errors.ts'
import type { Paths } from '../paths.ts'

const GB = 1024 ** 3
const MIN_POOL_GB = 4
const MKFS_TIMEOUT_MS = 120_000
const MOUNT_TIMEOUT_MS = 60_000
const DETACH_TIMEOUT_MS = 5000
const DETACH_LOOK_MS = 50
const BTRFS_STATE = '/sys/fs/btrfs'
const MAX_TREE_HEIGHT = 8

/** Creates the pool if there is none, and mounts it if it is not mounted. */
export async function openPool(paths: Paths, poolGb: number | null): Promise<void> {
  await mkdir(paths.pool, { recursive: true, mode: 0o700 })
  if (!existsSync(paths.poolFile)) {
    await refuseLost(paths)
    await makePool(paths, poolGb)
  }
  if (poolDevicePath(paths) === null) {
    await detachStaleDevices(paths)
    const options = 'loop,noatime,nodev,nosuid'
    await runOrThrow('mount', ['-t', 'btrfs', '-o', options, paths.poolFile, paths.pool], {
      timeoutMs: MOUNT_TIMEOUT_MS,
    })
    await runOrThrow('btrfs', ['quota', 'enable', paths.pool], { timeoutMs: MOUNT_TIMEOUT_MS })
  }
  await keepAccounts(paths)
  await mkdir(paths.disks, { recursive: true, mode: 0o700 })
  await mkdir(paths.volumes, { recursive: true, mode: 0o700 })
}

/**
 * Unmounts the pool. Its loop device is released by the last user of the file system, which may be the kernel still
 * cleaning up after a machine: it is awaited, so that closed means closed.
 */
export async function closePool(paths: Paths): Promise<void> {
  const device = poolDevicePath(paths)
  if (device === null) return
  await runOrThrow('umount', [paths.pool], { timeoutMs: MOUNT_TIMEOUT_MS })
  const backing = device.replace('/dev/', '/sys/block/').concat('/loop/backing_file')
  for (let waited = 0; waited < DETACH_TIMEOUT_MS; waited += DETACH_LOOK_MS) {
    const file = await readFile(backing, 'utf8').catch(() => '')
    if (file.trim() !== paths.poolFile) return
    await delay(DETACH_LOOK_MS)
  }
}

/**
 * Refuses new disks while the host or the pool is nearly full: a sparse pool promises more than there is, and running
 * machines must not be the ones to find out.
 */
export async function checkReserve(paths: Paths, reserveGb: number): Promise<void> {
  refuseUnwritable(paths)
  const { freeGb } = await readSpace(paths)
  if (freeGb < reserveGb) {
    throw new EngineError('host_full', `The host's disk is nearly full: less than ${reserveGb} GB are free.`)
  }
}

/** Free is what both the pool and the disk that it is on have. */
export async function readSpace(paths: Paths): Promise<{ gb: number; freeGb: number }> {
  const [host, pool] = await Promise.all([statfs(paths.machines), statfs(paths.pool)])
  const freeGb = Math.min((host.bavail * host.bsize) / GB, (pool.bavail * pool.bsize) / GB)
  return { gb: (pool.blocks * pool.bsize) / GB, freeGb }
}

/** The kernel makes a file system read-only that it could not write; and during a remount there is none. */
export function isWritable(paths: Paths): boolean {
  const row = poolMount(paths)
  if (row === null) return false
  const options = [row.split(' ')[5] ?? '', row.split(' - ')[1]?.split(' ')[2] ?? '']
  return !options.some((each) => each.split(',').includes('ro'))
}

export function refuseUnwritable(paths: Paths): void {
  if (isWritable(paths)) return
  throw new EngineError('host_full', 'The disks of this host cannot be written at the moment.')
}

/** How large it is. */
export async function poolBytes(paths: Paths): Promise<number> {
  const { blocks, bsize } = await statfs(paths.pool)
  return blocks * bsize
}

/** Returns the directory of the kernel's statistics. Null if it is unknown. */
export async function poolState(paths: Paths): Promise<string | null> {
  const device = basename(poolDevicePath(paths) ?? '')
  const pools = (await readdir(BTRFS_STATE)).map((name) => join(BTRFS_STATE, name))
  return pools.find((path) => existsSync(join(path, 'devices', device))) ?? null
}

/** Returns the major and minor number of the pool's block device, for io limits. Null if it is unknown. */
export async function poolDevice(paths: Paths): Promise<{ major: number; minor: number } | null> {
  const device = poolDevicePath(paths)
  if (device === null) return null
  const { rdev } = await stat(device)
  // glibc's makedev: the minor number has its low 8 bits first, the major 12 bits above them.
  return { major: (rdev >> 8) & 0xfff, minor: (rdev & 0xff) | ((rdev >> 12) & 0xfff00) }
}

/** A new pool would be an empty disk for every machine that has one. */
async function refuseLost(paths: Paths): Promise<void> {
  const left = await Promise.all([paths.machines, paths.aside].map((path) => readdir(path).catch(() => [])))
  const count = left.flat().length
  if (count === 0) return
  throw new Error(
    `The disk pool ${paths.poolFile} is missing, and ${count} machines have their disks in it: put it back. ` +
      `If it is lost for good, move ${paths.machines} and ${paths.aside} away; their units then are without a machine.`,
  )
}

async function makePool(paths: Paths, poolGb: number | null): Promise<void> {
  const host = await statfs(paths.pool)
  const freeGb = (host.bavail * host.bsize) / GB
  const sizeGb = poolGb ?? Math.floor(freeGb * 0.5)
  if (sizeGb < MIN_POOL_GB) {
    throw new EngineError(
      'host_full',
      `The disk pool needs at least ${MIN_POOL_GB} GB, and ${sizeGb.toFixed(1)} GB can be had: free some space, or set BERTH_DATA_DIR to a larger disk.`,
    )
  }
  const unfinished = `${paths.poolFile}.new`
  await writeFile(unfinished, '', { mode: 0o600 })
  await truncate(unfinished, sizeGb * GB).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EFBIG') throw error
    throw new EngineError(
      'host_full',
      `A disk pool of ${sizeGb} GB is larger than a file can be on the disk of ${paths.pool}: set BERTH_POOL_GB to less, ${freeGb.toFixed(0)} GB are free.`,
    )
  })
  await runOrThrow('mkfs.btrfs', ['--quiet', '--force', unfinished], { timeoutMs: MKFS_TIMEOUT_MS })
  await rename(unfinished, paths.poolFile)
}

/**
 * When a large disk is deleted that shares much with a fork, the kernel may stop its quota accounting, and with it
 * every limit of the pool: it does so above a tree height, which is set to one that no tree reaches.
 */
async function keepAccounts(paths: Paths): Promise<void> {
  const pool = await poolState(paths)
  const threshold = join(pool ?? '', 'qgroups/drop_subtree_threshold')
  // Kernels before 6.1 do not have this setting, and always count.
  if (pool && existsSync(threshold)) await writeFile(threshold, `${MAX_TREE_HEIGHT}`)
}

/** Detaches devices of the file that a crash left without a mount: btrfs must not see one file system on two. */
async function detachStaleDevices(paths: Paths): Promise<void> {
  const losetup = (args: string[]) => runOrThrow('losetup', args, { timeoutMs: MOUNT_TIMEOUT_MS })
  const listed = await losetup(['--noheadings', '--output', 'NAME', '--associated', paths.poolFile])
  for (const device of listed.split('\n').filter(Boolean)) await losetup(['--detach', device.trim()])
}

/** Returns `/dev/loopN` while the pool is mounted, else null. */
function poolDevicePath(paths: Paths): string | null {
  return poolMount(paths)?.split(' - ')[1]?.split(' ')[1] ?? null
}

function poolMount(paths: Paths): string | null {
  const table = readFileSync('/proc/self/mountinfo', 'utf8')
  return table.split('\n').find((line) => line.split(' ')[4] === paths.pool) ?? null
}
