// A process's identity in the fleet, read from a file. A renewed one is used without a restart.

import { readFile } from 'node:fs/promises'
import { type Clock, SECOND } from '../lib/clock.ts'
import { type FleetIdentity, parseIdentity } from '../lib/fleet-identity.ts'
import type { Log } from '../lib/log.ts'
import { runLoop } from '../lib/loop.ts'

export type FollowedIdentity = {
  current: () => FleetIdentity
  /** Calls `use` with each identity that takes the place of the current one. */
  onRenewed: (use: (renewed: FleetIdentity) => void) => void
  stop: () => Promise<void>
}

const LOOK_EVERY_MS = 10 * SECOND

/** Throws a sentence if the file holds no identity. */
export async function followIdentity(
  file: string,
  { log, clock }: { log: Log; clock: Clock },
): Promise<FollowedIdentity> {
  const read = async () => parseIdentity(await readFile(file, 'utf8'))
  const users: ((renewed: FleetIdentity) => void)[] = []
  let current = await read()
  const run = async () => {
    const found = await read()
    if (found.certificate === current.certificate) return
    current = found
    for (const use of users) use(found)
    log.info({ file }, 'new certificate in use')
  }
  const stopping = new AbortController()
  const loop = { name: 'certificate of the fleet', everyMs: LOOK_EVERY_MS, timeoutMs: LOOK_EVERY_MS, run }
  const following = runLoop(loop, { clock, log, signal: stopping.signal })
  return {
    current: () => current,
    onRenewed: (use) => void users.push(use),
    stop: async () => {
      stopping.abort()
      await following
    },
  }
}
