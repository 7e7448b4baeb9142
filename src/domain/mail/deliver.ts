// Delivers posted mails, each at least once; a receiver gets a mail twice only if its server lost the first
// acceptance. A mail that no server accepts is retried for a day, with growing pauses.

import type { App } from '../../app.ts'
import { DAY, HOUR, MINUTE, SECOND } from '../../lib/clock.ts'
import { deleteMail, type MailRecord, putOffMail, takeDueMails } from '../../store/mails.ts'
import type { Mail } from './post.ts'

const AT_ONCE = 20
/** Longer than any delivery takes; after this another process may try. */
const TAKEN_FOR_MS = 5 * MINUTE
const FIRST_PAUSE_MS = 10 * SECOND
const LONGEST_PAUSE_MS = HOUR
const TRIED_FOR_MS = DAY

/** One run of the background job. */
export async function deliverMails(app: App): Promise<void> {
  const now = app.clock.now()
  const until = new Date(now.getTime() + TAKEN_FOR_MS)
  const taken = await app.clock.withStableTime(() => takeDueMails(app.db, { now, until, limit: AT_ONCE }))
  await Promise.all(taken.map((mail) => deliver(app, mail)))
}

async function deliver(app: App, mail: MailRecord): Promise<void> {
  const { id, attempts, createdAt } = mail
  try {
    await app.deliverMail({ id, at: createdAt, ...open(app, mail) })
  } catch (error) {
    return await tryLater(app, mail, error)
  }
  await deleteMail(app.db, { id, attempts })
}

async function tryLater(app: App, { id, attempts, createdAt }: MailRecord, error: unknown): Promise<void> {
  const now = app.clock.now().getTime()
  if (now - createdAt.getTime() > TRIED_FOR_MS) {
    app.log.error({ mail: id, attempts, err: error }, 'mail delivery failed for good')
    return await deleteMail(app.db, { id, attempts })
  }
  app.log.warn({ mail: id, attempts, err: error }, 'mail delivery failed; will be retried')
  const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** (attempts - 1), LONGEST_PAUSE_MS)
  await putOffMail(app.db, { id, attempts, until: new Date(now + pauseMs) })
}

function open({ secretKey }: App, { id, sealed }: MailRecord) {
  // post.ts wrote it.
  const mail: Mail = JSON.parse(secretKey.open(sealed, ['mail', id]).toString())
  return { ...mail, replyTo: mail.replyTo ?? null }
}
