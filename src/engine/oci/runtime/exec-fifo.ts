// Starts a container that runc has created, as `runc start` does: the container's first process waits at a FIFO until it is
// opened for reading, says so in one byte, and becomes its program. Starting runc for that takes longer
// (decisions/creates.md).
//
// The FIFO is in runc's own directory, and removed as by runc: that it is gone is how runc knows that a container runs. A runc
// that has none is asked itself.

import { closeSync, constants, openSync, readFileSync, readSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

const LOOK_EVERY_MS = 1
/** As in runc: how soon it is noticed that the process has died. */
const LOOK_FOR_DEATH_EVERY = 100

export type Waited = 'started' | 'not-there' | 'dead' | 'hung'

/** `pidFile`: of the first process, written by runc. */
export async function releaseFirstProcess(
  directory: string,
  pidFile: string,
  { timeoutMs, signal }: { timeoutMs: number; signal: AbortSignal },
): Promise<Waited> {
  const path = join(directory, 'exec.fifo')
  const fifo = openFifo(path)
  if (fifo === null) return 'not-there'
  try {
    for (let waitedMs = 0; waitedMs < timeoutMs && !signal.aborted; waitedMs += LOOK_EVERY_MS) {
      // In this order: a process that has said so may be over by now.
      const isDead = waitedMs % LOOK_FOR_DEATH_EVERY === 0 && !isAlive(pidFile)
      if (hasSaidSo(fifo)) {
        rmSync(path)
        return 'started'
      }
      if (isDead) return 'dead'
      await delay(LOOK_EVERY_MS)
    }
    return 'hung'
  } finally {
    closeSync(fifo)
  }
}

function openFifo(path: string): number | null {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
  } catch {
    return null
  }
}

function hasSaidSo(fifo: number): boolean {
  try {
    return readSync(fifo, Buffer.alloc(1)) > 0
  } catch (error) {
    // The process has opened it and not written yet.
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return false
    throw error
  }
}

function isAlive(pidFile: string): boolean {
  try {
    const stat = readFileSync(`/proc/${readFileSync(pidFile, 'utf8').trim()}/stat`, 'utf8')
    return stat[stat.lastIndexOf(')') + 2] !== 'Z'
  } catch {
    return false
  }
}
