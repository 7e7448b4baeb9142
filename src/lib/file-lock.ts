// Locks between processes, by flock(2) on a file. The kernel holds one for the open file and releases it when its holder ends,
// for whatever reason, so there are no stale locks.

import { type FileHandle, open, readFile } from 'node:fs/promises'
import { constants } from 'node:os'
import koffi from 'koffi'
import { systemClock } from './clock.ts'

const flock = koffi.load('libc.so.6').func('int flock(int, int)')
const LOCK_SH = 1
const LOCK_EX = 2
const LOCK_NB = 4
const LOCK_UN = 8
const RETRY_EVERY_MS = 100

export type FileLock = { file: FileHandle; release(): Promise<void> }

/** `shared`: with other shared holders, but not with an exclusive one. */
export type LockKind = 'alone' | 'shared'

/** Returns null if another process holds it. */
export async function tryLock(path: string, kind: LockKind = 'alone'): Promise<FileLock | null> {
  const file = await open(path, 'a+', 0o600)
  if (flock(file.fd, (kind === 'alone' ? LOCK_EX : LOCK_SH) | LOCK_NB) === 0)
    return { file, release: () => release(file) }
  const errno = koffi.errno()
  await file.close()
  if (errno === constants.errno.EWOULDBLOCK) return null
  throw new Error(`flock failed with errno ${errno}`)
}

/**
 * Waits for the lock; rejects with the signal's reason when aborted. The wait is in real time, also where a test sets
 * the clock: the holder may be another process.
 */
export async function takeLock(
  path: string,
  signal?: AbortSignal,
  kind: LockKind = 'alone',
): Promise<FileLock> {
  for (;;) {
    const lock = await tryLock(path, kind)
    if (lock) return lock
    await systemClock.sleep(RETRY_EVERY_MS, signal)
  }
}

/** Returns the lock, with `name` in its file; if another process has it, returns that process's name. */
export async function lockFile(
  path: string,
  name = String(process.pid),
): Promise<FileLock | { owner: string }> {
  const lock = await tryLock(path)
  if (lock === null) return { owner: await nameIn(path) }
  await lock.file.truncate(0)
  await lock.file.write(name)
  return lock
}

async function nameIn(path: string): Promise<string> {
  return (await readFile(path, 'utf8')).trim() || 'unknown'
}

async function release(file: FileHandle): Promise<void> {
  // A program that is just being started also has the file open, until its exec.
  flock(file.fd, LOCK_UN)
  await file.close()
}
