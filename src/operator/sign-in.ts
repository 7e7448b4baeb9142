// `npm run sign-in -- EMAIL`: prints a one-time link, for an operator who lost the first one or a person whom no
// provider can sign in.

import type { Config } from '../config.ts'
import { createSignInLink } from '../domain/credentials/sign-in.ts'
import { systemClock } from '../lib/clock.ts'
import { print } from '../lib/terminal.ts'
import { signInUrl } from '../domain/credentials/sign-in-url.ts'
import { runBesideBerth } from './beside-berth.ts'

const usage = `npm run sign-in [-- EMAIL]

A link that signs in the person who opens it, once, within a day: as this address, or as the first account.`

/** Without an address, the link is for the first account. */
export async function printSignInLink(config: Config, args: string[]): Promise<number> {
  const email = args[0] ?? null
  if (email === '--help') {
    print(usage)
    return 0
  }
  if (email !== null && !/^[^@\s]+@[^@\s]+$/.test(email))
    throw new Error(`"${email}" is not an email address.`)
  return await runBesideBerth(config, async ({ db, baseUrl }) => {
    const link = await createSignInLink({ db, clock: systemClock }, email)
    print(`Signs in ${link.email}, once, until ${link.expiresAt.toISOString()}:`)
    print(signInUrl(baseUrl, link.token))
    return 0
  })
}
