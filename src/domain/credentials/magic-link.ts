// Mails a sign-in link to an address. The answer and the work are the same whether an account has the address or not,
// so a caller cannot find out who has an account.

import type { App } from '../../app.ts'
import { MINUTE } from '../../lib/clock.ts'
import { spendAllowance } from '../allowances/spend.ts'
import { postMail } from '../mail/post.ts'
import { inTransaction } from '../transactions/transactions.ts'
import { peerKey } from './failed-attempts.ts'
import { createSignInLink } from './sign-in.ts'
import { signInUrl } from './sign-in-url.ts'

const MAILED_LINK_LIVES_MINUTES = 15

/** Throws `rateLimited`. `peer`: the address of the client. */
export async function mailSignInLink(
  app: App,
  { email, peer }: { email: string; peer: string },
): Promise<void> {
  const { publicUrl } = app.config
  await inTransaction(app, async (db) => {
    await spendAllowance(app, db, 'link-by-peer', peerKey(peer))
    await spendAllowance(app, db, 'link-by-address', email.toLowerCase())
    const needs = { db, clock: app.clock }
    const { token } = await createSignInLink(needs, email, MAILED_LINK_LIVES_MINUTES * MINUTE)
    await postMail(app, db, {
      to: email,
      subject: 'Your link to sign in to Berth',
      text: textOf({ publicUrl, url: signInUrl(publicUrl, token) }),
    })
  })
}

const textOf = ({ publicUrl, url }: { publicUrl: string; url: string }) => `\
Someone asked to sign in to Berth at ${publicUrl} with this address. We hope it was you.

Open this link within ${MAILED_LINK_LIVES_MINUTES} minutes. It works once:

${url}

If it was not you, ignore this mail.
`
