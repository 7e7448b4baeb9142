// Walks and cleans a root file system. Nothing else writes to the tree while it is cleaned, so walking by path
// has no races. Links are never followed. Paths are bytes: a file name need not be text.

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

/** Where both jails have it. */
export const rootfs = '/image/rootfs'

const SETUID_OR_SETGID = 0o6000

/** No device nodes, FIFOs or sockets, no setuid or setgid bits, no file capabilities. */
export function clean(): void {
  for (const [path, stats] of entriesBelow(Buffer.from(rootfs))) {
    if (stats.isSymbolicLink()) continue
    if (!stats.isFile() && !stats.isDirectory()) {
      unlinkSync(path)
      continue
    }
    // The kernel takes file capabilities away from a file that is given to an owner, even to its own. Other
    // trusted and security attributes cannot be here: setting them takes CAP_SYS_ADMIN.
    if (stats.isFile()) lchownSync(path, stats.uid, stats.gid)
    if (stats.mode & SETUID_OR_SETGID) chmodSync(path, stats.mode & 0o1777)
  }
  makeMountPoints()
}

/** What is of `sinceMs` or later becomes of `toMs`, directories and links included. */
export function normalizeTimes({ sinceMs, toMs }: { sinceMs: number; toMs: number }): void {
  const settled = new Date(toMs)
  const all: [Buffer | string, Stats][] = [...entriesBelow(Buffer.from(rootfs)), [rootfs, lstatSync(rootfs)]]
  for (const [path, stats] of all) {
    if (stats.mtimeMs >= sinceMs) lutimesSync(path, settled, settled)
  }
}

/** What a runtime mounts over must be directories: through links there, runtimes have mounted elsewhere. */
function makeMountPoints(): void {
  for (const name of ['dev', 'proc', 'sys']) {
    rmSync(`${rootfs}/${name}`, { recursive: true, force: true })
    mkdirSync(`${rootfs}/${name}`, { mode: 0o755 })
  }
  lchownSync(rootfs, 0, 0)
  chmodSync(rootfs, 0o755)
}

/** Everything below a directory, parents first. What vanishes meanwhile is left out. */
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
