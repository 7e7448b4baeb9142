import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import PostalMime from 'postal-mime'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type MailServer, startMailServer } from '../../test/support/smtp.ts'
import { folderTransport, type Letter, smtpTransport } from './mail-transport.ts'

const letter: Letter = {
  id: 'mail_1',
  at: new Date('2026-11-21T12:00:00Z'),
  to: 'ann@example.test',
  subject: 'Grüße — from Berth',
  text: 'Open https://berth.example/sign-in?token=secret-of-the-mail\n\n.\nÄnd.',
  replyTo: 'bob@example.test',
}
const from = 'berth@berth.example'

describe('a mail by SMTP', () => {
  let server: MailServer
  beforeAll(async () => {
    server = await startMailServer()
  })
  afterAll(async () => await server.close())
  beforeEach(() => {
    server.treat('accept')
    server.received.length = 0
  })
  /** Only a test of a silent server waits for the end of its patience. */
  const deliver = (silentForMs = 20_000) => smtpTransport({ url: server.url, from, silentForMs })

  it('arrives unchanged, with the same message id and date on each attempt', async () => {
    await deliver()(letter)
    await deliver()(letter)
    const [first, second] = server.received
    expect(first).toMatchObject({ from, to: ['ann@example.test'] })
    expect(first?.mail).toMatchObject({
      subject: letter.subject,
      messageId: '<mail_1@berth.example>',
      date: letter.at.toISOString(),
      from: { address: from },
      to: [{ address: 'ann@example.test' }],
      replyTo: [{ address: 'bob@example.test' }],
    })
    expect(first?.mail.text?.trimEnd()).toBe(letter.text)
    expect(second?.mail).toMatchObject({ messageId: first?.mail.messageId, date: first?.mail.date })
  })

  it.each(['refuse', 'hang', 'drop'] as const)(
    'fails if the server would %s it, and the error contains neither recipient nor content',
    async (how) => {
      server.treat(how)
      const failed = await deliver(300)(letter).catch((error: unknown) => error)
      expect(failed).toBeInstanceOf(Error)
      expect(JSON.stringify(failed, Object.getOwnPropertyNames(failed))).not.toMatch(
        /secret-of-the-mail|ann@/,
      )
    },
  )

  it('is not sent if there is a password but the server has no TLS', async () => {
    const url = server.url.replace('//', '//berth:password@')
    await expect(smtpTransport({ url, from, silentForMs: 300 })(letter)).rejects.toThrow('ETLS')
    expect(server.received).toEqual([])
  })

  it('fails if nothing listens at the address', async () => {
    const nowhere = smtpTransport({ url: 'smtp://127.0.0.1:1', from, silentForMs: 300 })
    await expect(nowhere(letter)).rejects.toThrow('ECONNREFUSED')
  })

  // Reliability S18.
  it.each(['Hello\r\nBcc: eve@example.test', 'Hello\nX-Other: 1', 'Hello\r\n\r\nanother body', 'nul\0'])(
    'gets no additional header from the subject %j',
    async (subject) => {
      await deliver()({ ...letter, subject })
      const [got] = server.received
      expect(got?.to).toEqual(['ann@example.test'])
      expect(got?.mail.headers.map(({ key }) => key)).not.toEqual(expect.arrayContaining(['bcc']))
      expect(got?.mail.headers.map(({ key }) => key)).not.toContain('x-other')
      expect(got?.mail.text?.trimEnd()).toBe(letter.text)
    },
  )
})

describe('a mail written to a folder', () => {
  it('is a complete file that only its owner can read, and only its name is logged', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'berth-mail-'))
    try {
      const told: string[] = []
      const deliver = folderTransport({ dir, from, onWritten: (file) => told.push(file) })
      await deliver(letter)
      await deliver(letter)
      expect(await readdir(dir)).toEqual(['mail_1.eml'])
      expect(told).toEqual(['mail_1.eml', 'mail_1.eml'])
      expect((await stat(join(dir, 'mail_1.eml'))).mode & 0o777).toBe(0o600)
      const mail = await PostalMime.parse(await readFile(join(dir, 'mail_1.eml')))
      expect(mail).toMatchObject({ subject: letter.subject, to: [{ address: letter.to }] })
      expect(mail.text?.trimEnd()).toBe(letter.text)
    } finally {
      await rm(dir, { recursive: true, force: true })
    }
  })
})
