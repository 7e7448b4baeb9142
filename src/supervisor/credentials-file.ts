// `<dataDir>/credentials.json`: how a program on this host reaches this instance (design 7). Readable by root only.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { writeDurably } from '../lib/write-durably.ts'

const credentialsSchema = z.object({
  baseUrl: z.string(),
  apiKey: z.string(),
  signInUrl: z.string(),
  /** The root certificate of unit URLs; null if visitors need none. */
  caFile: z.string().nullable(),
})

export type Credentials = z.infer<typeof credentialsSchema>

export function credentialsPath(dataDir: string): string {
  return join(dataDir, 'credentials.json')
}

/** Returns null if there is no readable file: then a new key is created. */
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
