// What a create and a destroy ask of the pool's file system, as requests to the kernel: a start of btrfs(8) for each takes
// longer than all of them. The kernel may have a request wait for its disk, so they run on threads of their own.
//
// Each returns false if it is refused; btrfs(8) then does it or says why (decisions/creates.md).

import koffi from 'koffi'
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { basename, dirname } from 'node:path'

const libc = koffi.load('libc.so.6')
const ioctlFn = libc.func('int ioctl(int, unsigned long, void *)')

const QGROUP_CREATE = 0x4010942a
const QGROUP_LIMIT = 0x8030942b
const SUBVOL_CREATE = 0x50009418
const SNAP_DESTROY = 0x5000940f
/** `struct btrfs_ioctl_vol_args`. */
const DESTROY = { bytes: 4096, nameAt: 8 }
/** `struct btrfs_ioctl_vol_args_v2`. */
const volumeArgs = koffi.struct({
  fd: 'int64_t',
  transid: 'uint64_t',
  flags: 'uint64_t',
  size: 'uint64_t',
  qgroup_inherit: 'void *',
  unused: koffi.array('uint64_t', 2),
  name: koffi.array('char', 4040),
})
const createFn = libc.func('ioctl', 'int', ['int', 'unsigned long', koffi.pointer(volumeArgs)])
const FLAG_QGROUP_INHERIT = 4
/** Of `struct btrfs_qgroup_inherit` with one group, which comes last. */
const INHERIT = { bytes: 80, countAt: 8, groupAt: 72 }
/** Of `struct btrfs_ioctl_qgroup_limit_args`. */
const LIMIT = { bytes: 48, flagsAt: 8, referencedAt: 16 }
const LIMIT_REFERENCED = 1n
/** Of a qgroup's id, which are those of subvolumes on level 0. */
const LEVEL_BIT = 48n
const SHARE_LEVEL = 1n
const MAX_NAME_BYTES = 255
const THE_SUBVOLUME_ITSELF = 0n
const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW

/** Makes the qgroup of a share, with a limit, or limits the one that is there. */
export async function makeShare(pool: string, group: number, bytes: number): Promise<boolean> {
  const id = shareId(group)
  return await inDirectory(pool, async (fd) => {
    if (await limitGroup(fd, id, bytes)) return true
    const create = Buffer.alloc(16)
    create.writeBigUInt64LE(1n, 0)
    create.writeBigUInt64LE(id, 8)
    await request(fd, QGROUP_CREATE, create)
    return await limitGroup(fd, id, bytes)
  })
}

/** Makes a subvolume that counts against a share. */
export async function createSubvolume(path: string, group: number): Promise<boolean> {
  const name = basename(path)
  if (Buffer.byteLength(name) > MAX_NAME_BYTES) return false
  const inherit = Buffer.alloc(INHERIT.bytes)
  inherit.writeBigUInt64LE(1n, INHERIT.countAt)
  inherit.writeBigUInt64LE(shareId(group), INHERIT.groupAt)
  const size = INHERIT.bytes
  const args = {
    fd: 0,
    transid: 0,
    flags: FLAG_QGROUP_INHERIT,
    size,
    qgroup_inherit: inherit,
    unused: [0, 0],
    name,
  }
  return await inDirectory(dirname(path), (fd) =>
    onThread((done) => createFn.async(fd, SUBVOL_CREATE, args, done)),
  )
}

/** Deletes a subvolume with its files, which is refused if it contains others. */
export async function deleteSubvolume(path: string): Promise<boolean> {
  const name = basename(path)
  if (Buffer.byteLength(name) > MAX_NAME_BYTES) return false
  const args = Buffer.alloc(DESTROY.bytes)
  args.write(name, DESTROY.nameAt)
  return await inDirectory(dirname(path), (fd) => request(fd, SNAP_DESTROY, args))
}

/** Limits what is in a subvolume. */
export async function limitSubvolume(path: string, bytes: number): Promise<boolean> {
  return await inDirectory(path, (fd) => limitGroup(fd, THE_SUBVOLUME_ITSELF, bytes))
}

function limitGroup(fd: number, id: bigint, bytes: number): Promise<boolean> {
  const limit = Buffer.alloc(LIMIT.bytes)
  limit.writeBigUInt64LE(id, 0)
  limit.writeBigUInt64LE(LIMIT_REFERENCED, LIMIT.flagsAt)
  limit.writeBigUInt64LE(BigInt(bytes), LIMIT.referencedAt)
  return request(fd, QGROUP_LIMIT, limit)
}

function shareId(group: number): bigint {
  return (SHARE_LEVEL << LEVEL_BIT) | BigInt(group)
}

async function inDirectory(path: string, work: (fd: number) => Promise<boolean>): Promise<boolean> {
  const directory = await open(path, DIRECTORY).catch(() => null)
  if (directory === null) return false
  try {
    return await work(directory.fd)
  } finally {
    await directory.close()
  }
}

function request(fd: number, code: number, args: Buffer): Promise<boolean> {
  return onThread((done) => ioctlFn.async(fd, code, args, done))
}

type Done = (error: unknown, result: number) => void

/** A call that could not be made, for example since too many wait already, is a refusal, too. */
function onThread(call: (done: Done) => void): Promise<boolean> {
  return new Promise((resolve) => {
    try {
      call((error, result) => resolve(!error && result === 0))
    } catch {
      resolve(false)
    }
  })
}
