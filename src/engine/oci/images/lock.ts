// A lock between processes that share an images directory. The kernel holds it for the open file, so it ends
// with its holder, however that dies: there is no stale lock to judge.

import { constants } from 'node:os'
import { open } from 'node:fs/promises'
import koffi from 'koffi'
import type { Clock } from '../../../lib/clock.ts'

const flock = koffi.load('libc.so.6').func('int flock(int, int)')
const LOCK_EX = 2
const LOCK_NB = 4
const RETRY_EVERY_MS = 100

export type Lock = { release(): Promise<void> }

/** Null when someone else holds it. */
export async function tryLock(path: string): Promise<Lock | null> {
  const file = await open(path, 'a', 0o600)
  if (flock(file.fd, LOCK_EX | LOCK_NB) === 0) return { release: () => file.close() }
  const errno = koffi.errno()
  await file.close()
  if (errno === constants.errno.EWOULDBLOCK) return null
  throw new Error(`flock failed with errno ${errno}`)
}

/** Waits for the lock; rejects with the signal's reason when aborted. */
export async function takeLock(path: string, clock: Clock, signal: AbortSignal): Promise<Lock> {
  for (;;) {
    const lock = await tryLock(path)
    if (lock) return lock
    await clock.sleep(RETRY_EVERY_MS, signal)
  }
}
