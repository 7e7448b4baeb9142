// Ends dumps that an earlier engine left in progress. Such a run is frozen and must not be thawed before its dump has
// ended. A dump's working directory is the one it writes to, which identifies it.

import { readdir, readFile, readlink } from 'node:fs/promises'
import type { EngineContext } from '../machine/context.ts'

/** By then a dump is nearly done, or hangs. */
const WAIT_MS = 5000
const PAUSE_MS = 50

/** Waits for them, and kills those that hang. Never rejects, because other machines must still be adopted. */
export async function endAbandonedDumps(host: EngineContext): Promise<void> {
  for (let waitedMs = 0; ; waitedMs += PAUSE_MS) {
    const dumping = await dumpsBelow(`${host.paths.machines}/`)
    if (dumping.length === 0) return
    if (waitedMs > 2 * WAIT_MS) {
      host.log.error({ dumping }, 'abandoned checkpoint dumps cannot be ended')
      return
    }
    if (waitedMs >= WAIT_MS) dumping.forEach(tryKill)
    await host.clock.sleep(PAUSE_MS)
  }
}

async function dumpsBelow(directory: string): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const found = await Promise.all(
    pids.map(async (pid) => {
      const place = await readlink(`/proc/${pid}/cwd`).catch(() => '')
      return place.startsWith(directory) && place.endsWith('/memory.next') && (await isDump(pid))
    }),
  )
  return pids.filter((_, i) => found[i])
}

/** runc, or the CRIU it started: not a person's shell in that directory. */
async function isDump(pid: number): Promise<boolean> {
  const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0')
  return words.includes('checkpoint') || words.includes('swrk')
}

function tryKill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}
