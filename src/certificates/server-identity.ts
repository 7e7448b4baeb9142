// The server's identity in the fleet. The supervisor issues it, as root: the server's user can read its own key only,
// not that of the authority.

import { readFile } from 'node:fs/promises'
import { type Clock, MINUTE } from '../lib/clock.ts'
import { runLoop } from '../lib/loop.ts'
import { getAccount } from '../lib/system-users.ts'
import { writeDurably } from '../lib/write-durably.ts'
import type { KeptCertificate } from './default.ts'
import { renewIdentity } from './fleet-ca.ts'

const LOOK_EVERY_MS = MINUTE

type Wanted = {
  dataDir: string
  /** The server's host, by name. */
  host: string
  file: string
  clock: Clock
  /** Whose file it becomes. */
  owner?: { uid: number; gid: number }
}

/** Puts the server's key and certificate where it reads them, and renews them while the result is kept. */
export async function prepareServerIdentity({
  dataDir,
  host,
  file,
  clock,
  owner,
}: Wanted): Promise<KeptCertificate> {
  const member = { role: 'server', host } as const
  const reader = owner ?? (await getAccount('berth'))
  const run = async () => {
    const current = await readFile(file, 'utf8').catch(() => '')
    const renewed = await renewIdentity(dataDir, { member, current }, clock.now())
    if (renewed !== null) await writeDurably(file, renewed, 0o400, reader)
  }
  await run()
  const loop = { name: "server's certificate", everyMs: LOOK_EVERY_MS, timeoutMs: MINUTE, run }
  return { keep: async (around) => await runLoop(loop, { clock, ...around }) }
}
