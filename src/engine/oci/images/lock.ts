// A lock between processes that share an images directory. The kernel holds it for the open file and releases it when
// its holder ends, so there are no stale locks.

import { constants } from 'node:os'
import { open } from 'node:fs/promises'
import koffi from 'koffi'
import { systemClock } from '../../../lib/clock.ts'

const flock = koffi.load('libc.so.6').func('int flock(int, int)')
const LOCK_SH = 1
const LOCK_EX = 2
const LOCK_NB = 4
const LOCK_UN = 8
const RETRY_EVERY_MS = 100

export type Lock = { release(): Promise<void> }

/** `shared`: with other shared holders, but not with an exclusive one. */
export type LockKind = 'alone' | 'shared'

/** Returns null if another process holds it. */
export async function tryLock(path: string, kind: LockKind = 'alone'): Promise<Lock | null> {
  const file = await open(path, 'a', 0o600)
  const operation = kind === 'alone' ? LOCK_EX : LOCK_SH
  if (flock(file.fd, operation | LOCK_NB) === 0) {
    const release = async () => {
      // A program that is just being started also has the file open, until its exec.
      flock(file.fd, LOCK_UN)
      // It is free: nobody waits for the file to be closed.
      file.close().catch(() => {})
    }
    return { release }
  }
  const errno = koffi.errno()
  await file.close()
  if (errno === constants.errno.EWOULDBLOCK) return null
  throw new Error(`flock failed with errno ${errno}`)
}

/**
 * Waits for the lock; rejects with the signal's reason when aborted. The wait is in real time, also where a test sets
 * the clock: the holder may be another process.
 */
export async function takeLock(path: string, signal?: AbortSignal, kind: LockKind = 'alone'): Promise<Lock> {
  for (;;) {
    const lock = await tryLock(path, kind)
    if (lock) return lock
    await systemClock.sleep(RETRY_EVERY_MS, signal)
  }
}
