// Dumps of memory that an engine before us left under way. They leave a run as they found it, frozen, so nobody may let
// it go on before they are over. They work in the directory they write to, by which they are known.

import { readdir, readFile, readlink } from 'node:fs/promises'
import type { EngineContext } from '../context.ts'

/** One is nearly through by now, or hangs. */
const WAIT_MS = 5000
const PAUSE_MS = 50

/** Waits for them, and kills those that hang. Never rejects: other machines are to be adopted. */
export async function endAbandonedDumps(host: EngineContext): Promise<void> {
  for (let waitedMs = 0; ; waitedMs += PAUSE_MS) {
    const dumping = await dumpsBelow(`${host.paths.machines}/`)
    if (dumping.length === 0) return
    if (waitedMs > 2 * WAIT_MS) {
      host.log.error({ dumping }, 'dumps of memory cannot be ended')
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

/** runc, or the CRIU it started: not a person who looks around there. */
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
