// Mails, from the transaction that posts them to a mail server that may refuse, hang, disconnect or be down.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createTestDomain, type TestDomain } from '../../../test/support/domain.ts'
import { type MailServer, startMailServer } from '../../../test/support/smtp.ts'
import type { App } from '../../app.ts'
import { DAY, HOUR, MINUTE, SECOND } from '../../lib/clock.ts'
import { smtpTransport } from '../../integrations/mail-transport.ts'
import { deliverMails } from './deliver.ts'
import { type Mail, postMail } from './post.ts'

let domain: TestDomain
let server: MailServer
let app: App

beforeAll(async () => {
  domain = await createTestDomain()
  server = await startMailServer()
  app = appThatWaits(20 * SECOND)
})
afterAll(async () => {
  await server.close()
  await domain.close()
})
beforeEach(async () => {
  await app.db.deleteFrom('mails').execute()
  server.treat('accept')
  server.received.length = 0
})

/** For a mail server that says nothing. */
const appThatWaits = (silentForMs: number): App => ({
  ...domain.app,
  deliverMail: smtpTransport({ url: server.url, from: 'berth@berth.test', silentForMs }),
})

const mail: Mail = { to: 'ann@example.test', subject: 'A link', text: 'token-in-the-mail' }
const post = async (what: Partial<Mail> = {}) =>
  await app.db.transaction().execute((db) => postMail(app, db, { ...mail, ...what }))
const left = async () => await app.db.selectFrom('mails').selectAll().execute()

describe('a mail', () => {
  it('is delivered once by concurrent deliveries, and is deleted then', async () => {
    const ids = await Promise.all(Array.from({ length: 5 }, () => post()))
    await Promise.all(Array.from({ length: 8 }, () => deliverMails(app)))
    const received = server.received.map(({ mail: { messageId } }) => messageId)
    expect(received).toHaveLength(ids.length)
    expect(new Set(received)).toEqual(new Set(ids.map(({ id }) => `<${id}@berth.test>`)))
    expect(await left()).toEqual([])
  })

  it('of a transaction that rolls back is never sent', async () => {
    const failed = app.db.transaction().execute(async (db) => {
      await postMail(app, db, mail)
      throw new Error('changed its mind')
    })
    await expect(failed).rejects.toThrow('changed its mind')
    await deliverMails(app)
    expect(server.received).toEqual([])
  })

  it('is stored encrypted', async () => {
    await post({ replyTo: 'bob@example.test' })
    const [row] = await left()
    expect(row?.sealed.toString('latin1')).not.toMatch(/token-in-the-mail|example\.test/)
    expect(JSON.stringify({ ...row, sealed: null })).not.toContain('example.test')
  })

  it('whose content was swapped with that of another is not sent', async () => {
    await post({ text: 'for another' })
    const { id } = await post()
    const [other] = (await left()).filter((row) => row.id !== id)
    if (!other) throw new Error('there is no other mail')
    await app.db.updateTable('mails').set({ sealed: other.sealed }).where('id', '=', id).execute()
    await app.db.deleteFrom('mails').where('id', '=', other.id).execute()
    await deliverMails(app)
    expect(server.received).toEqual([])
    expect(await left()).toHaveLength(1)
  })

  it.each(['refuse', 'hang', 'drop'] as const)(
    'is sent again with the same message id after a server that would %s it',
    async (how) => {
      const { id } = await post()
      server.treat(how)
      await deliverMails(how === 'hang' ? appThatWaits(300) : app)
      expect(await left()).toMatchObject([{ id, attempts: 1 }])
      server.treat('accept')
      await deliverMails(app)
      expect(await left()).toHaveLength(1)
      domain.clock.advance(11 * SECOND)
      await deliverMails(app)
      expect(await left()).toEqual([])
      const ids = server.received.map(({ mail: { messageId } }) => messageId)
      expect(new Set(ids)).toEqual(new Set([`<${id}@berth.test>`]))
      expect(ids).toHaveLength(how === 'drop' ? 2 : 1)
    },
  )

  it('is tried again less and less often, for one day', async () => {
    await post()
    server.treat('refuse')
    let tries = 0
    for (let passedMs = 0; passedMs < DAY + 2 * HOUR; passedMs += 15 * MINUTE) {
      await deliverMails(app)
      tries = (await left())[0]?.attempts ?? tries
      domain.clock.advance(15 * MINUTE)
    }
    expect(await left()).toEqual([])
    expect(tries).toBeGreaterThan(20)
    expect(tries).toBeLessThan(40)
  })

  it('is delivered by another process when the first one dies', async () => {
    await post()
    const dying: App = { ...app, deliverMail: async () => await new Promise<never>(() => {}) }
    void deliverMails(dying)
    await expect.poll(async () => (await left())[0]?.attempts).toBe(1)
    await deliverMails(app)
    expect(server.received).toEqual([])
    domain.clock.advance(6 * MINUTE)
    await deliverMails(app)
    expect(server.received).toHaveLength(1)
    expect(await left()).toEqual([])
  })

  // Reliability S18.
  it.each([
    'ann@example.test, eve@example.test',
    'ann@example.test\r\nBcc: eve@example.test',
    'Ann <ann@example.test>',
    'ann@example.test>\r\nRCPT TO:<eve@example.test',
    'ann',
    'ann@exаmple.test',
    '',
  ])('to the address %j is refused', async (to) => {
    await expect(post({ to })).rejects.toThrow(TypeError)
    await expect(post({ replyTo: to })).rejects.toThrow(TypeError)
    expect(await left()).toEqual([])
  })

  it('has a subject without line breaks or control characters', async () => {
    await post({ subject: 'Join "x\r\nBcc: eve@example.test\u2028\0"' })
    await deliverMails(app)
    expect(server.received.map(({ to, mail: { subject } }) => ({ to, subject }))).toEqual([
      { to: ['ann@example.test'], subject: 'Join "x Bcc: eve@example.test "' },
    ])
  })
})
