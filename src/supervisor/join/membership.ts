// What a host keeps of its joining, in `<dataDir>/fleet/`, for root alone: its keys and certificates, and where it has
// joined.

import { chmod, mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { KeptCertificate } from '../../certificates/default.ts'
import { type Clock, MINUTE, SECOND } from '../../lib/clock.ts'
import type { FleetIdentity } from '../../lib/fleet-identity.ts'
import { parseIdentity } from '../../lib/fleet-identity.ts'
import { runLoop } from '../../lib/loop.ts'
import { readIfThere } from '../../lib/read-if-there.ts'
import type { Address } from '../../lib/setting-values.ts'
import { getAccount } from '../../lib/system-users.ts'
import { writeDurably } from '../../lib/write-durably.ts'
import { hostIdentitiesIn } from '../../processes/channel.ts'
import { addressSchema } from './protocol.ts'

export type Membership = {
  name: string
  /** The address at which it joined. */
  door: Address
  /** Where the server answers this machine's gateway; null if it does not. */
  link: Address | null
  /** The fingerprint of the token, which works once. */
  token: string
}

const membershipSchema: z.ZodType<Membership> = z.strictObject({
  name: z.string(),
  door: addressSchema,
  link: addressSchema.nullable(),
  token: z.string(),
})

/** Returns null on a machine that has not joined. */
export async function findMembership(dataDir: string): Promise<Membership | null> {
  const text = await readIfThere(fileOf(dataDir))
  if (text === null) return null
  try {
    return membershipSchema.parse(JSON.parse(text))
  } catch (cause) {
    throw new Error(`${fileOf(dataDir)} is damaged: remove it, and join again.`, { cause })
  }
}

/** Complete or not at all: without the last file it has not joined. */
export async function keepMembership(
  dataDir: string,
  membership: Membership,
  identities: { engine: string; gateway: string },
): Promise<void> {
  const files = hostIdentitiesIn(dataDir)
  await mkdir(join(dataDir, 'fleet'), { recursive: true })
  await chmod(join(dataDir, 'fleet'), 0o700)
  await writeDurably(files.engine, identities.engine, 0o600)
  await writeDurably(files.gateway, identities.gateway, 0o600)
  await writeDurably(fileOf(dataDir), `${JSON.stringify(membership)}\n`, 0o600)
}

const LOOK_EVERY_MS = 10 * SECOND

/**
 * Puts the gateway's identity where its process reads it, which only its own user and root can, and does so again when the
 * engine has renewed it, while the result is kept.
 */
export async function showGatewayIdentity(
  dataDir: string,
  { file, clock }: { file: string; clock: Clock },
): Promise<KeptCertificate> {
  const reader = await getAccount('berth-gateway')
  let shown = ''
  const run = async () => {
    const identity = await readFile(hostIdentitiesIn(dataDir).gateway, 'utf8')
    if (identity === shown) return
    await writeDurably(file, identity, 0o400, reader)
    shown = identity
  }
  await run()
  const loop = { name: "gateway's certificate", everyMs: LOOK_EVERY_MS, timeoutMs: MINUTE, run }
  return { keep: async (around) => await runLoop(loop, { clock, ...around }) }
}

/** Throws for a file that is none. */
export async function readIdentityFile(file: string): Promise<FleetIdentity> {
  return parseIdentity(await readFile(file, 'utf8'))
}

function fileOf(dataDir: string): string {
  return join(dataDir, 'fleet', 'joined.json')
}
