// Every path inside the tree of a unit or an image goes through here (test/support/tidy.ts enforces it). The content
// of the tree is untrusted, including links planted to lead elsewhere. So the kernel resolves each path as if the
// tree were the whole file system (openat2); files are read, created or written relative to the directory it found,
// by a name that is not a link; and no program of ours runs on a tree.

import { closeSync, constants, fstatSync, openSync, readlinkSync, readSync } from 'node:fs'
import { chmod, mkdir, open, unlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { closeFd, openInRoot, O_PATH } from './syscalls.ts'
import { errorCodeOf } from '../../../lib/error-code.ts'

const DIRECTORY = O_PATH | constants.O_DIRECTORY
const REWRITTEN = constants.O_WRONLY | constants.O_TRUNC | constants.O_NOFOLLOW
const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW

/**
 * Writes a file of root's, with missing parent directories. Links lead to directories within the tree. A file or link
 * of that name is replaced; for a directory it throws.
 */
export async function writeInTree(
  root: string,
  path: string,
  content: string | Buffer,
  mode = 0o644,
): Promise<void> {
  await inDirectory(root, dirname(path), 0o755, async (_, directory) => {
    const place = placeIn(directory, basename(path))
    await unlink(place).catch(unless('ENOENT'))
    const file = await open(place, NEW_FILE, 0o600)
    try {
      await file.writeFile(content)
      // In a directory with the setgid bit it would have the directory's group.
      await file.chown(0, 0)
      await file.chmod(mode)
    } finally {
      await file.close()
    }
  })
}

/** Gives a file that `writeInTree` has written another content: quicker, as long as nothing of the unit has run since. */
export async function rewriteInTree(root: string, path: string, content: string): Promise<void> {
  await inDirectory(root, dirname(path), 0o755, async (_, directory) => {
    const file = await open(placeIn(directory, basename(path)), REWRITTEN)
    try {
      await file.writeFile(content)
    } finally {
      await file.close()
    }
  })
}

/** Returns the first bytes of a file. Null if there is none, or if it is not a regular file. */
export function readInTree(root: string, path: string, maxBytes: number): Buffer | null {
  const rootFd = openRoot(root)
  let fd: number | null = null
  try {
    // A pipe must not block us.
    fd = openInRoot(rootFd, path, constants.O_RDONLY | constants.O_NONBLOCK)
    const stats = fstatSync(fd)
    if (!stats.isFile()) return null
    const buffer = Buffer.alloc(Math.min(stats.size, maxBytes))
    return buffer.subarray(0, readSync(fd, buffer, 0, buffer.length, 0))
  } catch (error) {
    unless('ENOENT', 'ENOTDIR', 'ELOOP')(error)
    return null
  } finally {
    if (fd !== null) closeFd(fd)
    closeSync(rootFd)
  }
}

/**
 * Returns a regular file's path in the tree without links, as `makeInTree` does for directories. Null if there is none.
 */
export function fileInTree(root: string, path: string): string | null {
  const rootFd = openRoot(root)
  const opened: number[] = []
  try {
    const open = (at: string, options?: { links: boolean }) => {
      const fd = openInRoot(rootFd, at, O_PATH, options)
      opened.push(fd)
      return fd
    }
    const fd = open(path)
    const real = realPath(rootFd, fd)
    return fstatSync(fd).isFile() && isSame(fd, open(real, { links: false })) ? real : null
  } catch (error) {
    unless('ENOENT', 'ENOTDIR', 'ELOOP', 'EXDEV')(error)
    return null
  } finally {
    for (const fd of opened) closeFd(fd)
    closeSync(rootFd)
  }
}

/** Whether there is a file that any user may execute. */
export function isProgramInTree(root: string, path: string): boolean {
  const rootFd = openRoot(root)
  let fd: number | null = null
  try {
    fd = openInRoot(rootFd, path, O_PATH)
    const stats = fstatSync(fd)
    return stats.isFile() && (stats.mode & 0o111) !== 0
  } catch (error) {
    unless('ENOENT', 'ENOTDIR', 'ELOOP', 'EXDEV')(error)
    return false
  } finally {
    if (fd !== null) closeFd(fd)
    closeSync(rootFd)
  }
}

/**
 * Creates a directory, with its parents, if it is missing. Returns its path in the tree without links, for programs
 * that do not know about links, valid as long as nothing of the unit runs.
 */
export async function makeInTree(root: string, path: string, mode = 0o755): Promise<string> {
  return await inDirectory(root, path, mode, async (rootFd, directory) => {
    const real = realPath(rootFd, directory)
    // The directory's name may not be valid text, and then another path results.
    const again = openInRoot(rootFd, real, DIRECTORY, { links: false })
    try {
      if (!isSame(again, directory)) throw new Error(`${path} was moved meanwhile`)
    } finally {
      closeFd(again)
    }
    return real
  })
}

/**
 * Returns the path on this host, for another program: of a path that `makeInTree` returned, while nothing of the unit
 * runs; of a file that Berth itself has put into an image; or in a volume in which nothing of a unit has been.
 */
export function pathInTree(root: string, real: string): string {
  return join(root, real)
}

/** Runs the work with the directory at a path, created with `mode` if it is missing. */
async function inDirectory<T>(
  root: string,
  path: string,
  mode: number,
  use: (rootFd: number, directory: number) => Promise<T>,
): Promise<T> {
  const rootFd = openRoot(root)
  try {
    const directory = await openDirectory(rootFd, path, mode)
    try {
      return await use(rootFd, directory)
    } finally {
      closeFd(directory)
    }
  } finally {
    closeSync(rootFd)
  }
}

async function openDirectory(rootFd: number, path: string, mode: number): Promise<number> {
  try {
    return openInRoot(rootFd, path, DIRECTORY)
  } catch (error) {
    if (path === dirname(path)) throw error
    unless('ENOENT')(error)
  }
  const above = await openDirectory(rootFd, dirname(path), 0o755)
  try {
    await makeDirectory(above, basename(path), mode)
  } finally {
    closeFd(above)
  }
  // If a link had that name, it still leads nowhere.
  return openInRoot(rootFd, path, DIRECTORY)
}

async function makeDirectory(above: number, name: string, mode: number): Promise<void> {
  const place = placeIn(above, name)
  try {
    await mkdir(place, 0o700)
  } catch (error) {
    return unless('EEXIST')(error)
  }
  const made = openSync(place, DIRECTORY | constants.O_NOFOLLOW)
  try {
    // The mode must not be reduced by this process's umask.
    await chmod(pathOf(made), mode)
  } finally {
    closeSync(made)
  }
}

/** The root itself is ours, and so is every name on the way to it. */
function openRoot(root: string): number {
  return openSync(root, DIRECTORY | constants.O_NOFOLLOW)
}

/** What the kernel says of an open file of the tree. */
function realPath(rootFd: number, fd: number): string {
  return join('/', readlinkSync(pathOf(fd)).slice(readlinkSync(pathOf(rootFd)).length))
}

function isSame(one: number, other: number): boolean {
  return fstatSync(one).ino === fstatSync(other).ino
}

function pathOf(fd: number): string {
  return `/proc/self/fd/${fd}`
}

function placeIn(directory: number, name: string): string {
  if (['', '.', '..'].includes(name)) throw new Error(`"${name}" names nothing in a directory`)
  return `${pathOf(directory)}/${name}`
}

/** Rethrows an error that has none of these codes. */
function unless(...codes: string[]): (error: unknown) => void {
  return (error) => {
    if (!codes.includes(errorCodeOf(error))) throw error
  }
}
