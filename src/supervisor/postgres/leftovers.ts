// Cleans up after an earlier server that, or whose supervisor, was killed: processes that still end, and a
// postmaster.pid whose number another process may have by now. Every Postgres process has the data directory as its
// working directory, so the directory's inode identifies our processes in any mount namespace.

import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { SECOND } from '../../lib/clock.ts'

const PATIENCE_MS = 20 * SECOND
const POLL_EVERY_MS = 50

/** Ends every process of this data directory, and removes what would keep a new server from starting. */
export async function endLeftovers(dataDir: string, socketDir: string): Promise<void> {
  for (const signal of ['SIGINT', 'SIGKILL'] as const) {
    const left = await processesIn(dataDir)
    for (const pid of left) kill(pid, signal)
    if (left.length === 0 || (await gone(dataDir))) break
  }
  const stale = [join(dataDir, 'postmaster.pid'), join(socketDir, '.s.PGSQL.5432')]
  for (const path of [...stale, `${stale[1]}.lock`]) await rm(path, { force: true })
}

async function gone(dataDir: string): Promise<boolean> {
  for (let waited = 0; waited < PATIENCE_MS; waited += POLL_EVERY_MS) {
    if ((await processesIn(dataDir)).length === 0) return true
    await delay(POLL_EVERY_MS)
  }
  return false
}

async function processesIn(dataDir: string): Promise<number[]> {
  const { dev, ino } = await stat(dataDir)
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const works = await Promise.all(
    // Processes may end meanwhile, and without root those of other users cannot be read: neither is ours.
    pids.map((pid) =>
      stat(`/proc/${pid}/cwd`).then(
        (cwd) => cwd.dev === dev && cwd.ino === ino,
        () => false,
      ),
    ),
  )
  return pids.filter((_, index) => works[index])
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It has ended in the meantime.
  }
}
