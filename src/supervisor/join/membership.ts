// What a host keeps of its joining, in `<dataDir>/fleet/`, for root alone: its keys and certificates, and where it has
// joined.

import { chmod, mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { FleetIdentity } from '../../lib/fleet-identity.ts'
import { parseIdentity } from '../../lib/fleet-identity.ts'
import { readIfThere } from '../../lib/read-if-there.ts'
import type { Address } from '../../lib/setting-values.ts'
import { getAccount } from '../../lib/system-users.ts'
import { writeDurably } from '../../lib/write-durably.ts'
import { addressSchema } from './protocol.ts'

export type Membership = {
  name: string
  /** Where it has joined. */
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

export const identityFilesIn = (dataDir: string) => ({
  engine: join(dataDir, 'fleet', 'engine.pem'),
  gateway: join(dataDir, 'fleet', 'gateway.pem'),
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
  const files = identityFilesIn(dataDir)
  await mkdir(join(dataDir, 'fleet'), { recursive: true })
  await chmod(join(dataDir, 'fleet'), 0o700)
  await writeDurably(files.engine, identities.engine, 0o600)
  await writeDurably(files.gateway, identities.gateway, 0o600)
  await writeDurably(fileOf(dataDir), `${JSON.stringify(membership)}\n`, 0o600)
}

/** Puts the gateway's identity where its process reads it, which only its own user and root can. */
export async function showGatewayIdentity(dataDir: string, file: string): Promise<void> {
  const identity = await readFile(identityFilesIn(dataDir).gateway, 'utf8')
  await writeDurably(file, identity, 0o400, await getAccount('berth-gateway'))
}

/** Throws for a file that is none. */
export async function readIdentityFile(file: string): Promise<FleetIdentity> {
  return parseIdentity(await readFile(file, 'utf8'))
}

function fileOf(dataDir: string): string {
  return join(dataDir, 'fleet', 'joined.json')
}
