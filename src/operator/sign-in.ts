// `npm run sign-in -- EMAIL`: prints a one-time link, for an operator who lost the first one or a person whom no
// provider can sign in.

import type { Config } from '../config.ts'
import { e2bSpellingOf } from '../lib/key-spelling.ts'
import { createSignInLink } from '../domain/credentials/sign-in.ts'
import { systemClock } from '../lib/clock.ts'
import { print } from '../lib/terminal.ts'
import { signInUrl } from '../domain/credentials/sign-in-url.ts'
import { readCredentials } from '../supervisor/credentials-file.ts'
import { runBesideBerth } from './beside-berth.ts'

const usage = `npm run sign-in [-- EMAIL]
npm run sign-in -- --key

A link that signs in the person who opens it, once, within a day: as this address, or as the first account.
With --key, the API key of the first start instead, also as clients of E2B spell it (docs/guides/e2b.md).`

/** Without an address, the link is for the first account. */
export async function printSignInLink(config: Config, args: string[]): Promise<number> {
  const email = args[0] ?? null
  if (email === '--help') {
    print(usage)
    return 0
  }
  if (email === '--key') return await printKey(config)
  if (email !== null && !/^[^@\s]+@[^@\s]+$/.test(email))
    throw new Error(`"${email}" is not an email address.`)
  return await runBesideBerth(config, async ({ db, baseUrl }) => {
    const link = await createSignInLink({ db, clock: systemClock }, email)
    print(`Signs in ${link.email}, once, until ${link.expiresAt.toISOString()}:`)
    print(signInUrl(baseUrl, link.token))
    return 0
  })
}

/** Clients that check a key's form take only the second spelling. */
async function printKey({ dataDir }: Config): Promise<number> {
  const credentials = await readCredentials(dataDir)
  if (credentials === null)
    throw new Error('There is no key yet: Berth has not been started with this data directory.')
  print(credentials.apiKey)
  const spelled = e2bSpellingOf(credentials.apiKey)
  if (spelled !== null) print(spelled)
  return 0
}
