// Sends a mail to an SMTP server, or writes it into a folder if there is none. No log line and no error contains a
// mail's text, since mails carry tokens.

import { join } from 'node:path'
import { getSystemErrorName } from 'node:util'
import { createTransport, type SendMailOptions } from 'nodemailer'
import { SECOND } from '../lib/clock.ts'
import { writeDurably } from '../lib/write-durably.ts'

export type Letter = {
  /** The same each time the mail is sent, so that a receiver can recognize a duplicate. */
  id: string
  at: Date
  to: string
  subject: string
  text: string
  replyTo: string | null
}

/** Resolves once the mail server or the folder has the mail; may be called again with the same letter. */
export type DeliverMail = (letter: Letter) => Promise<void>

/** Timeout of a silent server, and of a whole delivery. */
const SILENT_FOR_MS = 15 * SECOND
const LONGEST_TALK_MS = 60 * SECOND

export function smtpTransport({
  url,
  from,
  silentForMs = SILENT_FOR_MS,
}: {
  url: string
  from: string
  silentForMs?: number
}): DeliverMail {
  const silence = { connectionTimeout: silentForMs, greetingTimeout: silentForMs, socketTimeout: silentForMs }
  // An attacker in between could hide that the server offers TLS, and would get the password.
  const requireTLS = new URL(url).password !== ''
  const transport = createTransport({ url, requireTLS, ...silence })
  return async (letter) => {
    try {
      const signal = AbortSignal.timeout(LONGEST_TALK_MS)
      await transport.sendMail({ ...composed(letter, from), signal })
    } catch (error) {
      throw new Error(`the mail server did not accept the mail (${codeOf(error)})`)
    }
  }
}

export function folderTransport({
  dir,
  from,
  onWritten,
}: {
  dir: string
  from: string
  onWritten: (file: string) => void
}): DeliverMail {
  const transport = createTransport({ streamTransport: true, buffer: true })
  return async (letter) => {
    const { message } = await transport.sendMail(composed(letter, from))
    if (!Buffer.isBuffer(message)) throw new TypeError('a mail was composed as a stream')
    const file = `${letter.id}.eml`
    await writeDurably(join(dir, file), message.toString(), 0o600)
    onWritten(file)
  }
}

/** Addresses are objects: a text would be parsed as a list, and could contain a second address. */
function composed({ id, at, to, subject, text, replyTo }: Letter, from: string): SendMailOptions {
  const address = (one: string) => ({ name: '', address: one })
  return {
    messageId: `<${id}@${from.split('@')[1]}>`,
    date: at,
    from: address(from),
    to: [address(to)],
    envelope: { from, to: [to] },
    subject,
    text,
    ...(replyTo === null ? {} : { replyTo: address(replyTo) }),
    // No text of a caller may name a file or an address to fetch.
    disableFileAccess: true,
    disableUrlAccess: true,
    headers: { 'auto-submitted': 'auto-generated' },
  }
}

/** Returns the server's code, since its words may repeat the mail's content. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error'
  const { code, responseCode, errno } = error as NodeJS.ErrnoException & { responseCode?: number }
  const reason = errno === undefined ? undefined : getSystemErrorName(errno)
  return [code, responseCode, reason].filter((part) => part !== undefined).join(' ') || error.name
}
