// The identities in the fleet of the server and of the gateway beside it. The supervisor issues them, as root: their users can
// read their own key only, not that of the authority.

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
  role: 'server' | 'gateway'
  /** The server's host, by name. */
  host: string
  file: string
  clock: Clock
  /** Whose file it becomes, if not the role's own user. */
  owner?: { uid: number; gid: number }
}

const users = { server: 'berth', gateway: 'berth-gateway' } as const

/** Puts key and certificate where the process reads them, and renews them while the result is kept. */
export async function prepareServerIdentity({
  dataDir,
  role,
  host,
  file,
  clock,
  owner,
}: Wanted): Promise<KeptCertificate> {
  const member = { role, host }
  const reader = owner ?? (await getAccount(users[role]))
  const run = async () => {
    const current = await readFile(file, 'utf8').catch(() => '')
    const renewed = await renewIdentity(dataDir, { member, current }, clock.now())
    if (renewed !== null) await writeDurably(file, renewed, 0o400, reader)
  }
  await run()
  const loop = { name: `${role}'s certificate`, everyMs: LOOK_EVERY_MS, timeoutMs: MINUTE, run }
  return { keep: async (around) => await runLoop(loop, { clock, ...around }) }
}
