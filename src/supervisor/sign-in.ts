// `npm run sign-in -- EMAIL`: a one-time link for an operator who has lost the first one, or for a person
// whom no provider can sign in. Works beside a running Berth, as root.

import type { Config } from '../config.ts'
import { createSignInLink } from '../domain/credentials/sign-in.ts'
import { systemClock } from '../lib/clock.ts'
import { silentLog } from '../lib/log.ts'
import { openDatabase } from '../store/db.ts'
import { readCredentials } from './credentials-file.ts'
import { findInstance, postgresSocketDir, runDirOf } from './instance.ts'
import { postgresUrl } from './postgres.ts'
import { say } from '../lib/terminal.ts'
import { signInUrl } from '../domain/credentials/sign-in-url.ts'

/** Without an address, the link is the first account's. */
export async function printSignInLink(config: Config, args: string[]): Promise<number> {
  const email = args[0] ?? null
  if (email !== null && !/^[^@\s]+@[^@\s]+$/.test(email)) throw new Error(`"${email}" is no email address.`)
  const instance = await findInstance(config.dataDir)
  const credentials = await readCredentials(config.dataDir)
  if (!instance || !credentials) {
    throw new Error(`Berth has not been started on ${config.dataDir} yet: run "npm start" first, as root.`)
  }
  const embedded = postgresUrl(postgresSocketDir(runDirOf(instance)), 'berth')
  const db = openDatabase(config.databaseUrl ?? embedded, silentLog)
  try {
    const link = await createSignInLink({ db, clock: systemClock }, email)
    say(`Signs in ${link.email}, once, until ${link.expiresAt.toISOString()}:`)
    say(signInUrl(credentials.baseUrl, link.token))
    return 0
  } catch (cause) {
    throw new Error(`The database of Berth does not answer: is Berth running? (${String(cause)})`, { cause })
  } finally {
    await db.destroy()
  }
}
