// Mails a message to the operator of the service. The reply goes to a person: the signed-in one, else the person who
// connected the agent, else, if that person has left the team, its owner (spec 4.5).

import type { Kysely } from 'kysely'
import type { App } from '../../app.ts'
import { providerError } from '../../contract/errors.ts'
import type { SupportMessage, SupportTicket } from '../../contract/support.ts'
import { newId } from '../../lib/ids.ts'
import { type Contact, findContact, findOwnerContact } from '../../store/contacts.ts'
import type { Database } from '../../store/db.ts'
import { findFirstAdmin } from '../../store/users.ts'
import { spendAllowance } from '../allowances/spend.ts'
import type { Caller } from '../credentials/caller.ts'
import type { Once } from '../idempotency/once.ts'
import { postMail } from '../mail/post.ts'
import { inTransaction } from '../transactions/transactions.ts'

/** Throws `rateLimited` for too many messages by one credential. */
export async function sendToSupport(
  app: App,
  caller: Caller,
  { topic, message }: SupportMessage,
  once: Once | null,
): Promise<SupportTicket> {
  return await inTransaction(app, async (db) => {
    await once?.claim(db)
    await spendAllowance(app, db, 'support', caller.credentialId)
    const ticket = newId('ticket')
    const from = await answerTo(db, caller)
    await postMail(app, db, {
      to: await supportAddress(app, db),
      subject: `[${topic}] ${from?.teamName ?? caller.teamId}: ${ticket}`,
      text: `${message}\n\n-- \n${signature(caller, from, ticket)}\n`,
      ...(from ? { replyTo: from.email } : {}),
    })
    const sent: SupportTicket = { ok: true, ticket }
    await once?.keep(db, sent)
    return sent
  })
}

async function supportAddress({ config }: App, db: Kysely<Database>): Promise<string> {
  const address = config.supportEmail ?? (await findFirstAdmin(db))?.email
  if (address === undefined)
    throw providerError('This service has no support address: its operator must set BERTH_SUPPORT_EMAIL.')
  return address
}

async function answerTo(db: Kysely<Database>, { teamId, userId }: Caller): Promise<Contact | null> {
  const person = userId === null ? null : await findContact(db, { teamId, userId })
  return person ?? (await findOwnerContact(db, teamId))
}

function signature(caller: Caller, from: Contact | null, ticket: string): string {
  const { kind, credentialName, credentialId, teamId, plan } = caller
  const by = kind === 'session' ? 'a signed-in person' : `the ${kind} "${credentialName}" (${credentialId})`
  return [
    `Ticket: ${ticket}`,
    `Team:   ${from?.teamName ?? ''} (${teamId}), plan ${plan}`,
    `From:   ${from ? `${from.name} <${from.email}>` : 'nobody known'}, by ${by}`,
  ].join('\n')
}
