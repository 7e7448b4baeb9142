// Walks and cleans a root file system. Nothing else writes to the tree meanwhile, so walking by path has no races.
// Links are never followed. Paths are bytes, since a file name need not be valid text.

import {
  chmodSync,
  lchownSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  readdirSync,
  rmSync,
  type Stats,
  unlinkSync,
} from 'node:fs'

/** The path in both jails. */
export const rootfs = '/image/rootfs'

const SETUID_OR_SETGID = 0o6000

/** Removes device nodes, FIFOs and sockets, setuid and setgid bits, and file capabilities. */
export function clean(): void {
  for (const [path, stats] of entriesBelow(Buffer.from(rootfs))) {
    if (stats.isSymbolicLink()) continue
    if (!stats.isFile() && !stats.isDirectory()) {
      unlinkSync(path)
      continue
    }
    // Setting the owner of a file makes the kernel remove its capabilities, even if the owner is the same. Other
    // trusted and security attributes cannot be here: setting them needs CAP_SYS_ADMIN.
    if (stats.isFile()) lchownSync(path, stats.uid, stats.gid)
    if (stats.mode & SETUID_OR_SETGID) chmodSync(path, stats.mode & 0o1777)
  }
  makeMountPoints()
}

/** Sets `toMs` on everything of `sinceMs` or later, including directories and links. */
export function normalizeTimes({ sinceMs, toMs }: { sinceMs: number; toMs: number }): void {
  const settled = new Date(toMs)
  const all: [Buffer | string, Stats][] = [...entriesBelow(Buffer.from(rootfs)), [rootfs, lstatSync(rootfs)]]
  for (const [path, stats] of all) {
    if (stats.mtimeMs >= sinceMs) lutimesSync(path, settled, settled)
  }
}

/** Mount points must be directories: runtimes have followed links there and mounted elsewhere. */
function makeMountPoints(): void {
  for (const name of ['dev', 'proc', 'sys']) {
    rmSync(`${rootfs}/${name}`, { recursive: true, force: true })
    mkdirSync(`${rootfs}/${name}`, { mode: 0o755 })
  }
  lchownSync(rootfs, 0, 0)
  chmodSync(rootfs, 0o755)
}

/** Yields everything below a directory, parents first. Skips what vanishes meanwhile. */
export function* entriesBelow(directory: Buffer): Generator<[Buffer, Stats]> {
  const pending = [directory]
  for (let current = pending.pop(); current; current = pending.pop()) {
    for (const name of namesIn(current)) {
      const path = Buffer.concat([current, Buffer.from('/'), name])
      const stats = lstatSync(path, { throwIfNoEntry: false })
      if (!stats) continue
      yield [path, stats]
      if (stats.isDirectory()) pending.push(path)
    }
  }
}

function namesIn(directory: Buffer): Buffer[] {
  try {
    return readdirSync(directory, { encoding: 'buffer' })
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
    throw error
  }
}
