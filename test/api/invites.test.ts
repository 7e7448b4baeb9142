// Invitations over HTTP and by mail (spec 2.10, 4.1, 5.4; reliability S26): who may invite whom and for how long, and
// what happens to links that are guessed, used, replaced or opened by another person.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Invitation, InviteCreated } from '../../src/contract/invite.ts'
import type { MemberList } from '../../src/contract/member.ts'
import type { TeamAnswer } from '../../src/contract/team.ts'
import { FAILURES_PER_MINUTE } from '../../src/domain/credentials/failed-attempts.ts'
import { createSignInLink, signIn } from '../../src/domain/credentials/sign-in.ts'
import { newToken } from '../../src/domain/credentials/token.ts'
import { DAY, MINUTE } from '../../src/lib/clock.ts'
import {
  inviteTokenFor,
  makeMember,
  makeSession,
  makeSharedTeam,
  makeTeam,
  type TestMember,
} from '../support/make.ts'
import { type By, refusal, sendBy } from '../support/people.ts'
import { type Answer, type Service, startService } from '../support/service.ts'

let service: Service
let id: string
let owner: TestMember

beforeAll(async () => {
  service = await startService()
})
afterAll(async () => await service.close())
beforeEach(async () => {
  ;({ id, owner } = await makeSharedTeam(service))
})

const send = async <T>(method: string, path: string, by: By = {}, body?: unknown) =>
  await sendBy<T>(service, method, path, by, body)
const invite = async (body: unknown, by: By = owner) =>
  await send<InviteCreated>('POST', `/v1/teams/${id}/invites`, by, body)
const revoke = async (inviteId: string, by: By = owner, team = id) =>
  await send('DELETE', `/v1/teams/${team}/invites/${inviteId}`, by)
const lookUp = async (token: string) => await send<Invitation>('GET', `/v1/invites/${token}`)
const accept = async (token: string, by: By) =>
  await send<TeamAnswer>('POST', `/v1/invites/${token}/accept`, by)
const list = async () => (await send<MemberList>('GET', `/v1/teams/${id}/members`, owner)).body

/** Counts the answers with each status. */
function counted(answers: Answer[]): Record<string, number> {
  const byStatus = Map.groupBy(answers, ({ status }) => status)
  return Object.fromEntries([...byStatus].map(([status, some]) => [status, some.length]))
}

const tokenFor = async (email: string) => await inviteTokenFor(service, email)

async function signInAs(email: string): Promise<{ cookie: string }> {
  const { token } = await createSignInLink(service.app, email)
  return { cookie: `berth_session=${(await signIn(service.app, token)).token}` }
}

let count = 0
const newAddress = () => `guest-${count++}@example.test`

describe('invitation mails', () => {
  it('are limited for each address and for each team, without counting refused ones', async () => {
    const one = newAddress()
    for (let sent = 0; sent < 10; sent++) expect((await invite({ email: one })).status).toBe(201)
    const refused = await invite({ email: one })
    expect(refused.status).toBe(429)
    // The clock runs while the first ten are sent.
    const retryAfterS = Number(refused.headers.get('retry-after'))
    expect(retryAfterS).toBeGreaterThan(300)
    expect(retryAfterS).toBeLessThanOrEqual(600)
    expect(await service.mailTo(one)).toHaveLength(10)

    for (let sent = 10; sent < 30; sent++) {
      const { status, body } = await invite({ email: newAddress() })
      expect(status).toBe(201)
      // Frees a seat for the next.
      await revoke(body.invite.id)
    }
    expect((await invite({ email: newAddress() })).status).toBe(429)
    const { id: other, owner: leader } = await makeSharedTeam(service)
    expect((await send('POST', `/v1/teams/${other}/invites`, leader, { email: one })).status).toBe(201)
    service.clock.advance(10 * MINUTE)
    expect((await invite({ email: one })).status).toBe(201)
  })
})

describe('an invitation', () => {
  it('is sent by mail, says what it is for, and makes a member once', async () => {
    const email = newAddress()
    const { status, body } = await invite({ email, role: 'admin' })
    expect([status, body]).toEqual([
      201,
      {
        invite: {
          id: expect.stringMatching(/^inv_/),
          email,
          role: 'admin',
          invitedBy: owner.userId,
          expiresAt: expect.any(String),
          createdAt: expect.any(String),
        },
      },
    ])
    const { createdAt, expiresAt } = body.invite
    expect(Date.parse(expiresAt) - Date.parse(createdAt)).toBe(7 * DAY)
    expect((await list()).invites).toEqual([body.invite])

    const [mail] = await service.mailTo(email)
    expect(mail).toMatchObject({ replyTo: owner.email, subject: expect.stringContaining('"Shared"') })
    const token = await tokenFor(email)
    expect(mail?.text).toContain(`${service.app.config.publicUrl}/invites/${token}`)
    expect(token).toMatch(/^berth_invite_[0-9a-f]{12}_[A-Za-z0-9_-]{43}$/)
    expect((await lookUp(token)).body).toEqual({
      teamId: id,
      teamName: 'Shared',
      email,
      role: 'admin',
      inviterName: 'Person',
      expiresAt,
      expired: false,
    })

    const guest = await signInAs(email)
    const joined = await accept(token, guest)
    expect(joined).toMatchObject({ status: 200, body: { team: { id, role: 'admin', name: 'Shared' } } })
    const { members, invites } = await list()
    expect(invites).toEqual([])
    expect(members.map((member) => [member.email, member.role])).toContainEqual([email, 'admin'])
    expect(refusal(await accept(token, guest))).toEqual([404, 'not_found'])
    expect(refusal(await lookUp(token))).toEqual([404, 'not_found'])
  })

  it('has the role of a member by default', async () => {
    expect((await invite({ email: newAddress() })).body.invite.role).toBe('member')
  })

  it('is stored and logged without its token', async () => {
    const email = newAddress()
    await invite({ email })
    const token = await tokenFor(email)
    await lookUp(token)
    await accept(token, await signInAs(newAddress()))
    const { db } = service.app
    const stored = [
      await db.selectFrom('invites').selectAll().execute(),
      await db.selectFrom('audit').selectAll().execute(),
      await db.selectFrom('mails').selectAll().execute(),
    ]
    const text = JSON.stringify(stored, (_key, value: unknown) => (typeof value === 'bigint' ? '' : value))
    expect(text).toContain(email)
    expect(text + service.logged.join('')).not.toContain(token.slice(-43))
  })

  it('is mailed once for a repeated Idempotency-Key', async () => {
    const email = newAddress()
    const by = { ...owner, headers: { 'idempotency-key': 'once' } }
    const answers = [await invite({ email }, by), await invite({ email }, by)]
    expect(answers[1]?.body).toEqual(answers[0]?.body)
    expect(await service.mailTo(email)).toHaveLength(1)
  })

  it('to the same address in any case replaces the earlier one', async () => {
    const email = newAddress()
    const first = await invite({ email })
    const old = await tokenFor(email)
    const again = email.toUpperCase()
    const second = await invite({ email: again, role: 'admin' })
    expect((await list()).invites).toEqual([second.body.invite])
    expect(refusal(await lookUp(old))).toEqual([404, 'not_found'])
    expect(refusal(await accept(old, await signInAs(email)))).toEqual([404, 'not_found'])
    expect(refusal(await revoke(first.body.invite.id))).toEqual([404, 'not_found'])
    const many = await Promise.all([1, 2, 3, 4, 5].map(() => invite({ email })))
    expect(many.map(({ status }) => status)).toEqual([201, 201, 201, 201, 201])
    expect((await list()).invites).toHaveLength(1)
  })

  it('to a member of the team is refused', async () => {
    const member = await makeMember(service, id, 'member')
    for (const email of [member.email, member.email.toUpperCase(), owner.email]) {
      expect(refusal(await invite({ email }))).toEqual([409, 'conflict'])
    }
  })

  it.each([
    {},
    { email: 'nobody' },
    { email: 'a@b@example.test' },
    { email: 'two@example.test,other@example.test' },
    { email: 'line@example.test\r\nBcc: victim@example.test' },
    { email: 'Name <name@example.test>' },
    {
      email: `${'a'.repeat(60)}@${'b'.repeat(60)}.${'c'.repeat(60)}.${'d'.repeat(60)}.${'e'.repeat(60)}.test`,
    },
    { email: 'k\u212aelvin@example.test' },
    { email: 'fine@example.test', role: 'owner' },
    { email: 'fine@example.test', role: 'admin', invitedBy: 'user_x' },
  ])('with the body %j is refused', async (body) => {
    expect(refusal(await invite(body))).toEqual([400, 'validation'])
  })
})

describe('inviting a person (spec 5.6, 8)', () => {
  it.each([
    ['owner', 201],
    ['admin', 201],
    ['member', 403],
  ] as const)('as an %s returns %d, and so does revoking an invitation', async (role, status) => {
    const by = await makeMember(service, id, role)
    expect((await invite({ email: newAddress() }, by)).status).toBe(status)
    const { body } = await invite({ email: newAddress() })
    expect((await revoke(body.invite.id, by)).status).toBe(status === 201 ? 200 : 403)
  })

  it('needs the Pro plan, and a seat for each member and each invitation', async () => {
    const setPlan = async (plan: 'hobby' | 'pro') =>
      await service.app.db.updateTable('teams').set({ plan }).where('id', '=', id).execute()
    await setPlan('hobby')
    expect(refusal(await invite({ email: newAddress() }))).toEqual([403, 'forbidden'])
    await setPlan('pro')
    const addresses = Array.from({ length: 12 }, newAddress)
    const answers = await Promise.all(addresses.map((email) => invite({ email })))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(9)
    expect(answers.find(({ status }) => status !== 201)).toMatchObject({
      status: 402,
      body: { error: { code: 'quota_exceeded', details: { field: 'members', used: 10, max: 10 } } },
    })
    // A repeated invitation needs no other seat, and an expired one has none.
    const invited = addresses.find((_email, i) => answers[i]?.status === 201) ?? ''
    expect((await invite({ email: invited })).status).toBe(201)
    const token = await tokenFor(invited)
    await setPlan('hobby')
    expect(refusal(await accept(token, await signInAs(invited)))).toEqual([402, 'quota_exceeded'])
    expect((await list()).members).toHaveLength(1)
  })
})

describe('accepting an invitation', () => {
  it('is possible for its exact address only, and not for another tag, look-alike or domain', async () => {
    const email = 'kim@example.test'
    await invite({ email })
    const token = await tokenFor(email)
    for (const other of [
      'kim+berth@example.test',
      'k.im@example.test',
      'kim@example.test.example.org',
      'kim@xn--exmple-cua.test',
      'other@example.test',
    ]) {
      expect(refusal(await accept(token, await signInAs(other)))).toEqual([403, 'forbidden'])
    }
    // An account with a stored address of look-alike letters, however it got there.
    const lookAlike = await makeTeam(service)
    const { db } = service.app
    for (const address of ['\u212aim@example.test', 'k\u0131m@example.test', 'kіm@example.test']) {
      await db.updateTable('users').set({ email: address }).where('id', '=', lookAlike.userId).execute()
      const { email: stored } = await db
        .selectFrom('users')
        .select('email')
        .where('id', '=', lookAlike.userId)
        .executeTakeFirstOrThrow()
      expect(stored).toBe(address)
      const cookie = await sessionOf(lookAlike.userId)
      expect(refusal(await accept(token, { cookie }))).toEqual([403, 'forbidden'])
    }
    expect((await list()).members).toHaveLength(1)
    expect((await accept(token, await signInAs('KIM@Example.test'))).status).toBe(200)
  })

  it('is refused when the address of the account is not verified', async () => {
    const person = await makeTeam(service)
    const { db } = service.app
    await db.updateTable('users').set({ email_verified: false }).where('id', '=', person.userId).execute()
    await invite({ email: person.email })
    const cookie = await sessionOf(person.userId)
    expect(refusal(await accept(await tokenFor(person.email), { cookie }))).toEqual([403, 'forbidden'])
  })

  it('is possible for a signed-in person, and not for a key or from another site', async () => {
    const person = await makeTeam(service)
    await invite({ email: person.email })
    const token = await tokenFor(person.email)
    expect(refusal(await accept(token, {}))).toEqual([401, 'unauthorized'])
    expect(refusal(await accept(token, { key: person.key }))).toEqual([403, 'forbidden'])
    const cookie = await makeSession(service, person)
    const foreign = { cookie, headers: { origin: 'https://evil.test' } }
    expect(refusal(await accept(token, foreign))).toEqual([403, 'forbidden'])
    expect((await accept(token, { cookie })).status).toBe(200)
  })

  it('works once for concurrent requests, and makes one membership', async () => {
    const email = newAddress()
    await invite({ email })
    const token = await tokenFor(email)
    const sessions = [await signInAs(email), await signInAs(email)]
    const answers = await Promise.all([...sessions, ...sessions, ...sessions].map((by) => accept(token, by)))
    expect(counted(answers)).toEqual({ 200: 1, 404: 5 })
    expect((await list()).members.filter((member) => member.email === email)).toHaveLength(1)
  })

  it('accepting and revoking an invitation at the same time has exactly one effect', async () => {
    for (let round = 0; round < 4; round += 1) {
      const email = newAddress()
      const { body } = await invite({ email })
      const token = await tokenFor(email)
      const guest = await signInAs(email)
      const [accepted, revoked] = await Promise.all([accept(token, guest), revoke(body.invite.id)])
      expect(counted([accepted, revoked])).toEqual({ 200: 1, 404: 1 })
      const isMember = (await list()).members.some((member) => member.email === email)
      expect(isMember).toBe(accepted.status === 200)
    }
  })

  it('is possible within seven days', async () => {
    const email = newAddress()
    await invite({ email })
    const token = await tokenFor(email)
    service.clock.advance(7 * DAY - MINUTE)
    expect((await lookUp(token)).body).toMatchObject({ expired: false })
    service.clock.advance(MINUTE)
    expect((await lookUp(token)).body).toMatchObject({ expired: true })
    expect(refusal(await accept(token, await signInAs(email)))).toEqual([409, 'invalid_state'])
    owner = { ...owner, cookie: await makeSession(service, owner) }
    expect((await list()).invites).toHaveLength(1)
    await invite({ email })
    expect((await accept(await tokenFor(email), await signInAs(email))).status).toBe(200)
  })

  it('accepting or revoking an invitation is refused to another team', async () => {
    const { body } = await invite({ email: newAddress() })
    const other = await makeSharedTeam(service)
    expect(refusal(await revoke(body.invite.id, other.owner, other.id))).toEqual([404, 'not_found'])
    expect(refusal(await revoke(body.invite.id, other.owner))).toEqual([403, 'forbidden'])
    expect((await list()).invites).toHaveLength(1)
  })
})

describe('an invitation token that was never issued', () => {
  it('returns 404 for any mistake in it, and is not repeated in the answer', async () => {
    const email = newAddress()
    await invite({ email })
    const token = await tokenFor(email)
    const guest = await signInAs(email)
    const wrong = [
      newToken('invite').token,
      token.slice(0, -43) + newToken('invite').token.slice(-43),
      token.slice(0, -1),
      `${token}x`,
      token.toUpperCase(),
      newToken('signIn').token,
      'x',
    ]
    for (const each of wrong) {
      for (const answer of [await lookUp(each), await accept(each, guest)]) {
        expect(refusal(answer)).toEqual([404, 'not_found'])
        expect(JSON.stringify(answer.body)).not.toContain('\\"\\"')
        if (each.length > 43) expect(JSON.stringify(answer.body)).not.toContain(each.slice(-43))
      }
    }
    expect((await accept(token, guest)).status).toBe(200)
  })

  it('can be tried only a limited number of times from one address', async () => {
    const limited = await startService()
    try {
      const path = `/v1/invites/${newToken('invite').token}`
      const answers = []
      for (let tries = 0; tries < FAILURES_PER_MINUTE; tries += 20) {
        answers.push(...(await Promise.all(Array.from({ length: 20 }, () => limited.call('GET', path)))))
      }
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([404]))
      const refused = await limited.call('GET', path)
      expect([refused.status, Number(refused.headers.get('retry-after'))]).toEqual([429, expect.any(Number)])
      limited.clock.advance(MINUTE)
      expect((await limited.call('GET', path)).status).toBe(404)
    } finally {
      await limited.close()
    }
  })
})

describe('the page of an invitation', () => {
  const page = async (token: string, by: By = {}) =>
    await service.fetch('GET', `/invites/${token}`, { ...by, headers: { accept: 'text/html' } })
  const post = async (token: string, by: By = {}) =>
    await service.fetch('POST', `/invites/${token}`, {
      ...by,
      body: '',
      headers: {
        origin: service.baseUrl,
        'content-type': 'application/x-www-form-urlencoded',
        ...by.headers,
      },
    })

  it('shows team, role and address, and has a button to accept', async () => {
    const email = newAddress()
    await invite({ email, role: 'admin' })
    const token = await tokenFor(email)
    const signedOut = await (await page(token)).text()
    expect(signedOut).toMatch(/Shared.*an admin/s)
    expect(signedOut).toContain('/sign-in')
    expect(signedOut).not.toContain('<form')
    expect((await post(token)).status).toBe(401)

    const guest = await signInAs(email)
    expect(await (await page(token, guest)).text()).toContain(`action="/invites/${token}"`)
    expect((await list()).members).toHaveLength(1)
    const answer = await post(token, guest)
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/account'])
    expect((await list()).members).toHaveLength(2)
    const rows = await service.app.db
      .selectFrom('audit')
      .select(['status', 'via'])
      .where('action', '=', 'invite.accept')
      .where('target', '=', id)
      .execute()
    expect(rows).toEqual([{ status: 200, via: 'dashboard' }])
    expect((await page(token)).status).toBe(404)
    expect((await post(token, guest)).status).toBe(404)
  })

  it('refuses another account and a form of another site', async () => {
    const email = newAddress()
    await invite({ email })
    const token = await tokenFor(email)
    const other = await signInAs(newAddress())
    const shown = await (await page(token, other)).text()
    expect(shown).toContain('/sign-out')
    expect(shown).not.toContain('action="/invites')
    expect((await post(token, other)).status).toBe(403)
    const guest = await signInAs(email)
    const forged = { ...guest, headers: { origin: 'https://evil.test' } }
    expect((await post(token, forged)).status).toBe(403)
    expect((await list()).members).toHaveLength(1)
  })

  it('escapes text that others wrote', async () => {
    const headers = { origin: service.baseUrl }
    const body = { name: '<script>alert(1)</script>' }
    await service.call('PATCH', `/v1/teams/${id}`, { cookie: owner.cookie, headers, body })
    const email = newAddress()
    await invite({ email })
    const html = await (await page(await tokenFor(email))).text()
    expect(html).not.toContain('<script')
    expect(html).toContain('&#60;script&#62;')
    expect((await page('%3Cscript%3E')).status).toBe(404)
  })
})

/** A session of an account whose address could get no sign-in link. */
async function sessionOf(userId: string): Promise<string> {
  const { db } = service.app
  const address = newAddress()
  const session = await signInAs(address)
  const { id: other } = await db
    .selectFrom('users')
    .select('id')
    .where('email', '=', address)
    .executeTakeFirstOrThrow()
  await db.updateTable('sessions').set({ user_id: userId }).where('user_id', '=', other).execute()
  return session.cookie
}
