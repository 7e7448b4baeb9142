// Spec 4.5: messages to support, and where the answer goes.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { AuditList } from '../../src/contract/audit.ts'
import type { SupportTicket } from '../../src/contract/support.ts'
import { MINUTE, SECOND } from '../../src/lib/clock.ts'
import { makeKey, makeSession, makeTeam, type TestTeam } from '../support/make.ts'
import { type CallOptions, type Service, startService } from '../support/service.ts'

const support = 'support@operator.test'

let service: Service
let team: TestTeam

beforeAll(async () => {
  service = await startService({ supportEmail: support })
})
afterAll(async () => await service.close())
beforeEach(async () => {
  team = await makeTeam(service)
})

const question = { topic: 'question', message: 'How long is a lease?' }
const send = async (by: CallOptions, body: unknown = question) =>
  await service.call<SupportTicket>('POST', '/v1/support', {
    body,
    ...by,
    headers: { origin: service.baseUrl, ...by.headers },
  })
const mailOf = async (ticket: string, to = support) =>
  (await service.mailTo(to)).find(({ subject }) => subject.includes(ticket))

describe('POST /v1/support', () => {
  it('mails the message to support with its sender, and returns a ticket', async () => {
    const { status, body } = await send({ key: team.key })
    expect(status).toBe(201)
    expect(body).toEqual({ ok: true, ticket: expect.stringMatching(/^ticket_[0-9a-f]{32}$/) })
    const mail = await mailOf(body.ticket)
    expect(mail?.subject).toContain('[question]')
    expect(mail?.text).toContain(question.message)
    expect(mail?.text).toContain(team.teamId)
    expect(mail?.text).toContain(team.keyId)
    expect(mail?.text).not.toContain(team.key)
  })

  it.each(['question', 'bug', 'idea'])('accepts the topic %s', async (topic) => {
    expect((await send({ key: team.key }, { topic, message: 'x' })).status).toBe(201)
  })

  it.each([
    {},
    { topic: 'question' },
    { message: 'x' },
    { topic: 'praise', message: 'x' },
    { topic: 'bug', message: '' },
    { topic: 'bug', message: ' \n' },
    { topic: 'bug', message: 7 },
    { topic: 'bug', message: 'nul\0' },
    { topic: 'bug', message: 'x'.repeat(10_001) },
    { topic: 'bug', message: 'x', replyTo: 'eve@example.test' },
  ])('refuses the body %j', async (body) => {
    expect(await send({ key: team.key }, body)).toMatchObject({
      status: 400,
      body: { error: { code: 'validation' } },
    })
  })

  it('sends one mail for a repeated Idempotency-Key', async () => {
    const by = { key: team.key, headers: { 'idempotency-key': 'once' } }
    const [first, second] = [await send(by), await send(by)]
    expect(second).toMatchObject({ status: 201, body: first.body })
    const mails = await service.mailTo(support)
    expect(mails.filter(({ subject }) => subject.includes(first.body.ticket))).toHaveLength(1)
  })

  it('is audited with the size of the message only', async () => {
    const { body } = await send({ key: team.key }, { topic: 'bug', message: 'my password is hunter2' })
    const { body: log } = await service.call<AuditList>('GET', '/v1/audit', { key: team.key })
    const row = log.events.find(({ action }) => action === 'support.send')
    expect(row).toMatchObject({ target: body.ticket, input: { topic: 'bug', messageBytes: 22 }, status: 201 })
    expect(JSON.stringify(log) + service.logged.join('')).not.toContain('hunter2')
  })

  // Reliability S18.
  it('cannot add a mail header by the name of a team or person', async () => {
    await service.app.db
      .updateTable('teams')
      .set({ name: 'Ann\r\nBcc: eve@example.test' })
      .where('id', '=', team.teamId)
      .execute()
    const { body } = await send({ key: team.key })
    expect((await mailOf(body.ticket))?.subject).toBe(`[question] Ann Bcc: eve@example.test: ${body.ticket}`)
  })
})

describe('the reply address of a support message', () => {
  const join = async (member: TestTeam, role: 'admin' | 'member') => {
    const row = { team_id: team.teamId, user_id: member.userId, role, joined_at: service.app.clock.now() }
    await service.app.db.insertInto('memberships').values(row).execute()
  }
  const leave = async ({ userId }: TestTeam) =>
    await service.app.db
      .deleteFrom('memberships')
      .where('team_id', '=', team.teamId)
      .where('user_id', '=', userId)
      .execute()

  it('is that of the signed-in person', async () => {
    const member = await makeTeam(service)
    await join(member, 'member')
    const cookie = await makeSession(service, member)
    const { body } = await send({ cookie, headers: { 'x-berth-team': team.teamId } })
    expect(await mailOf(body.ticket)).toMatchObject({ replyTo: member.email })
  })

  it('is that of the person who made the key, or of the owner once that person has left the team', async () => {
    const member = await makeTeam(service)
    await join(member, 'member')
    const { secret } = await makeKey(service, { teamId: team.teamId, userId: member.userId })
    const before = await send({ key: secret })
    expect(await mailOf(before.body.ticket)).toMatchObject({ replyTo: member.email })
    await leave(member)
    const after = await send({ key: secret })
    expect(await mailOf(after.body.ticket)).toMatchObject({ replyTo: team.email })
  })
})

describe('the limit of five support messages in ten minutes', () => {
  it('applies to each credential, with an exact retry-after', async () => {
    const herd = await Promise.all(Array.from({ length: 12 }, () => send({ key: team.key })))
    expect(herd.filter(({ status }) => status === 201)).toHaveLength(5)
    const refused = herd.find(({ status }) => status === 429)
    expect(refused?.body).toMatchObject({ error: { code: 'quota_exceeded' } })
    const waitS = Number(refused?.headers.get('retry-after'))
    expect(waitS).toBeGreaterThan(9 * 60)
    expect(waitS).toBeLessThanOrEqual(10 * 60)

    const other = await makeKey(service, team)
    expect((await send({ key: other.secret })).status).toBe(201)
    service.clock.advance(waitS * SECOND - MINUTE)
    expect((await send({ key: team.key })).status).toBe(429)
    service.clock.advance(MINUTE)
    expect((await send({ key: team.key })).status).toBe(201)
  })

  it('does not count refused messages', async () => {
    for (let time = 0; time < 8; time++) await send({ key: team.key }, { topic: 'bug' })
    expect((await send({ key: team.key })).status).toBe(201)
  })
})

it('the oldest admin gets support messages when no support address is set', async () => {
  const other = await startService({ loops: false })
  try {
    const [first, second] = [await makeTeam(other), await makeTeam(other)]
    const nobody = await other.call('POST', '/v1/support', { key: first.key, body: question })
    expect(nobody).toMatchObject({ status: 502, body: { error: { code: 'provider_error' } } })
    const { db } = other.app
    await db.updateTable('users').set({ admin: true }).where('id', '=', second.userId).execute()
    const sent = await other.call<SupportTicket>('POST', '/v1/support', { key: first.key, body: question })
    expect(sent.status).toBe(201)
    expect(await other.mailTo(second.email)).toMatchObject([{ replyTo: first.email }])
  } finally {
    await other.close()
  }
})
