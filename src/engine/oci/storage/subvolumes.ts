// Subvolumes within a subvolume. btrfs deletes none that contains others, wherever they are. They are found and named
// by number, because their names and paths are untrusted. No unit can make any now (seccomp.ts).

import { closeSync, constants, openSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { ioctl } from '../kernel/syscalls.ts'

const BYTES = 4096
const INO_LOOKUP = 0xd0009412
const TREE_SEARCH = 0xd0009411
/** The root directory of every subvolume. */
const TOP_INODE = 256n
/** In the tree of trees: which subvolume has which in it. */
const ROOT_TREE = 1n
const ROOT_REF = 156
/** Of `struct btrfs_ioctl_search_args` and `struct btrfs_ioctl_search_header`. */
const SEARCH = { minObject: 8, maxObject: 16, minOffset: 24, maxOffset: 32, maxTransaction: 48 }
const SEARCH_TYPES = { min: 56, max: 60, items: 64, found: 104 }
const HEADER = { bytes: 32, offset: 16, length: 28 }
const MOST = 2n ** 64n - 1n

/** Returns the numbers of all subvolumes in it, at any depth, each after those that it contains. */
export async function nestedSubvolumes(path: string): Promise<bigint[]> {
  const fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  try {
    const found = [subvolumeOf(fd)]
    // The list grows while it is read.
    for (const parent of found) {
      found.push(...childrenOf(fd, parent))
      await setImmediate()
    }
    return found.slice(1).toReversed()
  } finally {
    closeSync(fd)
  }
}

/** Returns the number of the subvolume at a path. */
export function subvolumeNumber(path: string): bigint {
  const fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  try {
    return subvolumeOf(fd)
  } finally {
    closeSync(fd)
  }
}

function subvolumeOf(fd: number): bigint {
  const args = Buffer.alloc(BYTES)
  args.writeBigUInt64LE(TOP_INODE, 8)
  ioctl(fd, INO_LOOKUP, args)
  return args.readBigUInt64LE(0)
}

function childrenOf(fd: number, parent: bigint): bigint[] {
  const children: bigint[] = []
  for (let from = 0n; ; from = (children.at(-1) ?? 0n) + 1n) {
    const some = searchChildren(fd, parent, from)
    if (some.length === 0) return children
    children.push(...some)
  }
}

function searchChildren(fd: number, parent: bigint, from: bigint): bigint[] {
  const args = Buffer.alloc(BYTES)
  args.writeBigUInt64LE(ROOT_TREE, 0)
  args.writeBigUInt64LE(parent, SEARCH.minObject)
  args.writeBigUInt64LE(parent, SEARCH.maxObject)
  args.writeBigUInt64LE(from, SEARCH.minOffset)
  args.writeBigUInt64LE(MOST, SEARCH.maxOffset)
  args.writeBigUInt64LE(MOST, SEARCH.maxTransaction)
  args.writeUInt32LE(ROOT_REF, SEARCH_TYPES.min)
  args.writeUInt32LE(ROOT_REF, SEARCH_TYPES.max)
  args.writeUInt32LE(BYTES, SEARCH_TYPES.items)
  ioctl(fd, TREE_SEARCH, args)
  const children: bigint[] = []
  let at = SEARCH_TYPES.found
  for (let left = args.readUInt32LE(SEARCH_TYPES.items); left > 0; left -= 1) {
    children.push(args.readBigUInt64LE(at + HEADER.offset))
    at += HEADER.bytes + args.readUInt32LE(at + HEADER.length)
  }
  return children
}
