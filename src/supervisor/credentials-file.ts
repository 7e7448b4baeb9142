// `<dataDir>/credentials.json`: how a program on this host reaches this instance (design 7). For root alone.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { writeDurably } from '../lib/write-durably.ts'

const credentialsSchema = z.object({
  baseUrl: z.string(),
  apiKey: z.string(),
  signInUrl: z.string(),
  /** The certificate authority of unit URLs; null while the gateway has none. */
  caFile: z.string().nullable(),
})

export type Credentials = z.infer<typeof credentialsSchema>

export function credentialsPath(dataDir: string): string {
  return join(dataDir, 'credentials.json')
}

/** Null when there are none, or none that can be read: a new key is made then. */
export async function readCredentials(dataDir: string): Promise<Credentials | null> {
  try {
    return credentialsSchema.parse(JSON.parse(await readFile(credentialsPath(dataDir), 'utf8')))
  } catch {
    return null
  }
}

export async function writeCredentials(dataDir: string, credentials: Credentials): Promise<void> {
  await writeDurably(credentialsPath(dataDir), `${JSON.stringify(credentials, null, 2)}\n`, 0o600)
}
