// A transaction that has something to tell writes the mail as a row, which is delivered after it (deliver.ts). A
// rollback thus sends nothing, and a commit is mailed even if this process dies.

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
    if (!emailPattern.test(address)) throw new TypeError('a mail can only be sent to one plain address')
  }
  const id = newId('mail')
  const sealed = secretKey.seal(Buffer.from(JSON.stringify({ ...mail, subject: oneLine(mail.subject) })), [
    'mail',
    id,
  ])
  await insertMail(transaction, { id, sealed, createdAt: clock.now() })
  return { id }
}

/** A subject can contain chosen names: a line break in it would begin another header (S18). */
function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\u2028\u2029]+/gu, ' ').slice(0, 200)
}
