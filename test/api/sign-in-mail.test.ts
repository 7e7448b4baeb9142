// Design 7: sign-in links by mail for any address, and what a caller cannot learn by asking for one (S4, S26).

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Me } from '../../src/contract/me.ts'
import { MINUTE, SECOND } from '../../src/lib/clock.ts'
import { openBrowser } from '../support/browser.ts'
import { makeTeam, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam

beforeAll(async () => {
  service = await startService()
})
afterAll(async () => await service.close())
beforeEach(async () => {
  await service.app.db.deleteFrom('allowances').execute()
  team = await makeTeam(service)
})

const ask = async (email: string, browser = openBrowser(service)) =>
  await browser.post('/sign-in/link', { email })
const linksTo = async (email: string) =>
  (await service.mailTo(email)).map(({ text }) => /http\S+\/sign-in\?token=(\S+)/.exec(text)?.[1] ?? '')
const newestLink = async (email: string) => (await linksTo(email)).at(-1) ?? ''
const whoIs = async (cookie: string) => (await service.call<Me>('GET', '/v1/me', { cookie })).body.user

it('without a mail server, the sign-in page offers no mail and says how the operator makes a link', async () => {
  const silent = await startService({ mail: { smtpUrl: null, from: 'berth@berth.test' } })
  const page = await (await openBrowser(silent).get('/sign-in')).text()
  expect(page).not.toContain('Mail me a link')
  expect(page).toContain('npm run sign-in')
  await silent.close()
})

describe('a request for a sign-in link', () => {
  it('sends a mail with a link that signs in once', async () => {
    const page = await (await openBrowser(service).get('/sign-in')).text()
    expect(page).toContain('action="/sign-in/link"')
    expect((await ask(team.email)).status).toBe(200)
    const token = await newestLink(team.email)
    const browser = openBrowser(service)
    expect((await browser.get(`/sign-in?token=${token}`)).status).toBe(200)
    expect((await browser.post('/sign-in', { token })).status).toBe(303)
    expect(await whoIs(browser.cookies())).toMatchObject({ email: team.email })
    expect((await browser.post('/sign-in', { token })).status).toBe(401)
  })

  it('gets the same answer and the same mail with and without an account', async () => {
    const stranger = `nobody-${Date.now()}@example.test`
    const [known, unknown] = [await ask(team.email), await ask(stranger)]
    expect(unknown.status).toBe(known.status)
    const [one, other] = [await known.text(), await unknown.text()]
    expect(other.replaceAll(stranger, 'X')).toBe(one.replaceAll(team.email, 'X'))
    const [mail] = await service.mailTo(team.email)
    const [otherMail] = await service.mailTo(stranger)
    const withoutToken = (text = '') => text.replace(/token=\S+/, '')
    expect(otherMail?.subject).toBe(mail?.subject)
    expect(withoutToken(otherMail?.text)).toBe(withoutToken(mail?.text))
  })

  it('gives a link that expires after a quarter of an hour', async () => {
    await ask(team.email)
    const token = await newestLink(team.email)
    service.clock.advance(14 * MINUTE)
    expect((await openBrowser(service).get(`/sign-in?token=${token}`)).status).toBe(200)
    service.clock.advance(MINUTE)
    expect((await openBrowser(service).get(`/sign-in?token=${token}`)).status).toBe(401)
    expect((await openBrowser(service).post('/sign-in', { token })).status).toBe(401)
  })

  it('signs in to the account of that address in any case, and not to a similar one', async () => {
    await ask(team.email.toUpperCase())
    const browser = openBrowser(service)
    await browser.post('/sign-in', { token: await newestLink(team.email.toUpperCase()) })
    expect(await whoIs(browser.cookies())).toMatchObject({ id: team.userId })
    for (const other of [team.email.replace('@', '+x@'), team.email.replace('person', 'per.son')]) {
      await ask(other)
      const stranger = openBrowser(service)
      await stranger.post('/sign-in', { token: await newestLink(other) })
      expect(await whoIs(stranger.cookies())).toMatchObject({ email: other })
    }
  })

  it.each([
    '',
    'ann',
    'ann@',
    'ann@exаmple.test',
    'ann@example.test, eve@example.test',
    'ann@example.test\r\nBcc: eve@example.test',
    'Ann <ann@example.test>',
    '"ann"@example.test',
    `${'a'.repeat(64)}@${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(63)}.test`,
    '<script>@example.test',
  ])('with the address %j is refused, and sends nothing', async (email) => {
    const before = await service.app.db.selectFrom('sign_in_links').select('prefix').execute()
    const answer = await ask(email)
    expect(answer.status).toBe(400)
    expect(await answer.text()).not.toMatch(/<script|eve@/)
    expect(await service.app.db.selectFrom('sign_in_links').select('prefix').execute()).toEqual(before)
  })

  it('is rate limited for an address, with an exact retry-after', async () => {
    const answers = []
    for (let time = 0; time < 6; time++) answers.push(await ask(team.email))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 429])
    const refused = answers[5]
    expect(refused?.headers.get('content-type')).toContain('text/html')
    expect(await service.mailTo(team.email)).toHaveLength(5)
    expect((await ask(team.email.toUpperCase())).status).toBe(429)
    expect((await ask('another@example.test')).status).toBe(200)
    service.clock.advance(Number(refused?.headers.get('retry-after')) * SECOND)
    expect((await ask(team.email)).status).toBe(200)
  })

  it('is rate limited for the caller’s IP address, with any mail addresses', async () => {
    const statuses: number[] = []
    for (let time = 0; time < 61; time++) statuses.push((await ask(`many-${time}@example.test`)).status)
    expect(statuses.slice(0, 60)).toEqual(Array(60).fill(200))
    expect(statuses[60]).toBe(429)
  })
})

it('thirty sign-in links of a new address make one account when used concurrently', async () => {
  const email = `crowd-${Date.now()}@example.test`
  for (let time = 0; time < 30; time++) {
    await service.app.db.deleteFrom('allowances').execute()
    await ask(email)
  }
  const tokens = await linksTo(email)
  expect(new Set(tokens).size).toBe(30)
  const browsers = await Promise.all(
    tokens.map(async (token) => {
      const browser = openBrowser(service)
      expect((await browser.post('/sign-in', { token })).status).toBe(303)
      return browser
    }),
  )
  const ids = await Promise.all(browsers.map(async (browser) => (await whoIs(browser.cookies()))?.id))
  expect(new Set(ids).size).toBe(1)
  const users = await service.app.db.selectFrom('users').select('id').where('email', '=', email).execute()
  expect(users).toHaveLength(1)
})

it('a session that was planted in a browser ends when its owner signs in there', async () => {
  const attacker = openBrowser(service)
  await ask('attacker@example.test')
  await attacker.post('/sign-in', { token: await newestLink('attacker@example.test') })
  const planted = attacker.cookie('berth_session') ?? ''
  const victim = openBrowser(service)
  victim.setCookie('berth_session', planted)
  await ask(team.email)
  await victim.post('/sign-in', { token: await newestLink(team.email) })
  expect(victim.cookie('berth_session')).not.toBe(planted)
  expect(await whoIs(victim.cookies())).toMatchObject({ email: team.email })
  expect(await whoIs(`berth_session=${planted}`)).toBeUndefined()
})

it('sign-in links and sessions are neither stored nor logged in plain text', async () => {
  await ask(team.email)
  const { db } = service.app
  const mails = await db.selectFrom('mails').selectAll().execute()
  const token = await newestLink(team.email)
  const browser = openBrowser(service)
  await browser.post('/sign-in', { token })
  const kept = JSON.stringify([
    mails.map(({ sealed }) => sealed.toString('latin1')),
    await db.selectFrom('sign_in_links').selectAll().execute(),
    await db.selectFrom('sessions').selectAll().execute(),
    service.logged,
  ])
  for (const secret of [token, browser.cookie('berth_session') ?? '']) {
    expect(secret.length).toBeGreaterThan(50)
    expect(kept).not.toContain(secret)
    // What follows the prefix that is kept; it may hold the separator itself.
    expect(kept).not.toContain(secret.slice(-43))
  }
})
