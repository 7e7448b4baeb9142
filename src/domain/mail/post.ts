// Mails are written down by the transaction that has something to say, and delivered after it (deliver.ts): what is
// rolled back tells nobody, and what is committed is told even if this process dies.

import type { Kysely } from 'kysely'
import type { App } from '../../app.ts'
import { emailPattern } from '../../lib/email.ts'
import { newId } from '../../lib/ids.ts'
import type { Database } from '../../store/db.ts'
import { insertMail } from '../../store/mails.ts'

export type Mail = {
  /** One address. */
  to: string
  subject: string
  text: string
  replyTo?: string
}

export async function postMail(
  { clock, secretKey }: Pick<App, 'secretKey'> & { clock: Pick<App['clock'], 'now'> },
  transaction: Kysely<Database>,
  mail: Mail,
): Promise<{ id: string }> {
  for (const address of [mail.to, mail.replyTo ?? mail.to]) {
    if (!emailPattern.test(address)) throw new TypeError('a mail can be sent to one plain address alone')
  }
  const id = newId('mail')
  const sealed = secretKey.seal(Buffer.from(JSON.stringify({ ...mail, subject: oneLine(mail.subject) })), [
    'mail',
    id,
  ])
  await insertMail(transaction, { id, sealed, createdAt: clock.now() })
  return { id }
}

/** A subject may hold what people are called: a line break in it would begin a header of its own (S18). */
function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\u2028\u2029]+/gu, ' ').slice(0, 200)
}
