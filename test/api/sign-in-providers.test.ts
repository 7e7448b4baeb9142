// S27: signing in with a real OpenID provider and with one in the manner of GitHub, and everything that can be wrong
// about it.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Me } from '../../src/contract/me.ts'
import { MINUTE } from '../../src/lib/clock.ts'
import { type Browser, goToProvider, openBrowser } from '../support/browser.ts'
import { type Github, startGithub } from '../support/github.ts'
import { makeTeam } from '../support/make.ts'
import { type OpenIdProvider, startOpenIdProvider } from '../support/openid.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let openId: OpenIdProvider
let github: Github

beforeAll(async () => {
  openId = await startOpenIdProvider('http://berth.test/sign-in/google')
  github = await startGithub()
  service = await startService({ signIn: { google: openId.client, github: github.client } })
})
afterAll(async () => {
  await service.close()
  await github.close()
  await openId.close()
})

let count = 0
/** The id that both providers have for a person. */
let person: string
let email: string
beforeEach(async () => {
  await service.app.db.deleteFrom('allowances').execute()
  person = String(1000 + count++)
  email = `p${person}@example.test`
  know({})
})

const providers = ['google', 'github'] as const
type Provider = (typeof providers)[number]

function know({ verified = true, id = person, address = email, name = 'Ann' }) {
  openId.people.set(id, { email: address, email_verified: verified, name })
  const emails = [
    { email: `other-${id}@example.test`, primary: false, verified: true },
    { email: address, primary: true, verified },
  ]
  github.people.set(id, { login: 'ann', name, emails })
}

const whoIs = async (browser: Browser) => {
  const { status, body } = await service.call<Me>('GET', '/v1/me', { cookie: browser.cookies() })
  return status === 200 ? body.user : null
}
/** The credit balance of each of the person’s teams. */
const creditsOf = async (browser?: Browser) => {
  const cookie = browser?.cookies() ?? ''
  const { body } = await service.call<Me>('GET', '/v1/me', { cookie })
  return body.teams.map(({ creditBalanceCents }) => creditBalanceCents)
}
async function signIn(provider: Provider, browser = openBrowser(service, person)) {
  const answer = await browser.get(await goToProvider(browser, provider))
  return { browser, status: answer.status, answer }
}
const usersOf = async (address: string) =>
  (await service.app.db.selectFrom('users').select(['id', 'email']).execute()).filter(
    (user) => user.email.toLowerCase() === address.toLowerCase(),
  )

describe.each(providers)('signing in with %s', (provider) => {
  it.each([
    [' \u202eAnn\n\u200b of the\u2066 service ', 'Ann of the service'],
    ['\u3164\u2800 \u0007', null],
    ['\u{1f409}'.repeat(60), '\u{1f409}'.repeat(40)],
  ])('shows a person called %j as %j', async (given, shown) => {
    know({ name: given })
    const { browser } = await signIn(provider)
    expect((await whoIs(browser))?.name).toBe(shown ?? email.split('@')[0])
  })

  it('makes an account at first, and finds it again after the address has changed', async () => {
    const { browser, answer } = await signIn(provider)
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/'])
    const user = await whoIs(browser)
    expect(user).toMatchObject({ email, name: 'Ann', emailVerified: true, admin: false })
    know({ address: `moved-${email}` })
    const again = await signIn(provider)
    expect(await whoIs(again.browser)).toMatchObject({ id: user?.id, email })
    expect(await usersOf(`moved-${email}`)).toEqual([])
  })

  it('with a verified address leads to the existing account', async () => {
    const team = await makeTeam(service)
    know({ address: team.email.toUpperCase() })
    const { browser } = await signIn(provider)
    expect(await whoIs(browser)).toMatchObject({ id: team.userId })
    expect(await usersOf(team.email)).toHaveLength(1)
  })

  it('with an unverified address is refused, with and without an account', async () => {
    const team = await makeTeam(service)
    know({ address: team.email, verified: false })
    const { browser, status } = await signIn(provider)
    expect(status).toBe(403)
    expect(await whoIs(browser)).toBeNull()
    know({ verified: false })
    expect((await signIn(provider)).status).toBe(403)
    expect(await usersOf(email)).toEqual([])
    const identities = await service.app.db.selectFrom('identities').select('subject').execute()
    expect(identities.map(({ subject }) => subject)).not.toContain(person)
  })

  it('does not join an account whose own address is not verified', async () => {
    const team = await makeTeam(service)
    await service.app.db
      .updateTable('users')
      .set({ email_verified: false })
      .where('id', '=', team.userId)
      .execute()
    know({ address: team.email })
    expect((await signIn(provider)).status).toBe(403)
  })

  it.each(['ann@example.test, eve@example.test', 'ann@exаmple.test', `${'a'.repeat(250)}@example.test`])(
    'refuses the address %j',
    async (address) => {
      know({ address })
      expect((await signIn(provider)).status).toBe(403)
      expect(await usersOf(address)).toEqual([])
    },
  )

  it('makes one account for thirty concurrent sign-ins', async () => {
    const sessions = await Promise.all(Array.from({ length: 30 }, () => signIn(provider)))
    expect(sessions.map(({ status }) => status)).toEqual(sessions.map(() => 303))
    const ids = await Promise.all(sessions.map(async ({ browser }) => (await whoIs(browser))?.id))
    expect(new Set(ids).size).toBe(1)
    expect(await usersOf(email)).toHaveLength(1)
    expect(await creditsOf(sessions[0]?.browser)).toEqual([500])
    const tokens = sessions.map(({ browser }) => browser.cookie('berth_session'))
    expect(new Set(tokens).size).toBe(30)
  })

  it('accepts the answer of the provider once', async () => {
    const browser = openBrowser(service, person)
    const back = await goToProvider(browser, provider)
    const flow = browser.cookie('berth_provider') ?? ''
    expect((await browser.get(back)).status).toBe(303)
    const thief = openBrowser(service)
    thief.setCookie('berth_provider', flow)
    expect((await thief.get(back)).status).toBe(401)
    expect(await whoIs(thief)).toBeNull()
  })

  it('accepts the answer of the provider only in the browser that began', async () => {
    const back = await goToProvider(openBrowser(service, person), provider)
    const other = `1${person}`
    know({ id: other, address: `victim-${email}` })
    const victim = openBrowser(service, other)
    expect((await victim.get(back)).status).toBe(401)
    // Also when it has begun a sign-in of its own, which can be completed.
    const own = await goToProvider(victim, provider)
    expect((await victim.get(back)).status).toBe(401)
    expect(await whoIs(victim)).toBeNull()
    await victim.get(own)
    expect(await whoIs(victim)).toMatchObject({ email: `victim-${email}` })
  })

  it('refuses a code with the state of another sign-in', async () => {
    const stolen = new URL(await goToProvider(openBrowser(service, person), provider))
    const thief = openBrowser(service, person)
    const own = new URL(await goToProvider(thief, provider))
    own.searchParams.set('code', stolen.searchParams.get('code') ?? '')
    expect((await thief.get(own.href)).status).toBe(401)
    expect(await whoIs(thief)).toBeNull()
  })

  it.each(['', 'x', 'berth_provider_000000000000_' + 'a'.repeat(43)])(
    'refuses the state %j',
    async (state) => {
      const browser = openBrowser(service, person)
      const back = new URL(await goToProvider(browser, provider))
      const real = back.searchParams.get('state') ?? ''
      back.searchParams.set('state', state)
      expect((await browser.get(back.href)).status).toBe(401)
      back.searchParams.set('state', real)
      expect((await browser.get(back.href)).status).toBe(303)
    },
  )

  it('makes no account when the person or the provider refuses', async () => {
    const browser = openBrowser(service, person)
    const back = new URL(await goToProvider(browser, provider))
    back.searchParams.delete('code')
    back.searchParams.set('error', 'access_denied')
    const answer = await browser.get(back.href)
    expect(answer.status).toBe(401)
    expect(await answer.text()).toContain('/sign-in')
    expect(await usersOf(email)).toEqual([])
  })

  it('has to be completed within ten minutes', async () => {
    const browser = openBrowser(service, person)
    const back = await goToProvider(browser, provider)
    service.clock.advance(11 * MINUTE)
    expect((await browser.get(back)).status).toBe(401)
  })

  it('gives a new session, and ends the earlier one of the browser', async () => {
    const attacker = openBrowser(service, person)
    await signIn(provider, attacker)
    const planted = attacker.cookie('berth_session') ?? ''
    person = String(1000 + count++)
    know({ address: `victim-${person}@example.test` })
    const victim = openBrowser(service, person)
    victim.setCookie('berth_session', planted)
    await signIn(provider, victim)
    expect(victim.cookie('berth_session')).not.toBe(planted)
    expect(await whoIs(victim)).toMatchObject({ email: `victim-${person}@example.test` })
    expect((await service.call('GET', '/v1/me', { cookie: `berth_session=${planted}` })).status).toBe(401)
  })

  it('gives a session that ends with the sign-out', async () => {
    const { browser } = await signIn(provider)
    const cookie = browser.cookies()
    expect((await browser.post('/sign-out')).status).toBe(303)
    expect((await service.call('GET', '/v1/me', { cookie })).status).toBe(401)
  })

  it('cannot be begun from another site or by a GET', async () => {
    const before = await service.app.db.selectFrom('provider_sign_ins').select('prefix').execute()
    for (const headers of [{ origin: 'https://evil.test' }, { origin: 'null' }, {}]) {
      const answer = await service.fetch('POST', `/sign-in/${provider}`, { headers })
      expect(answer.status).toBe(403)
      expect(answer.headers.get('set-cookie')).toBeNull()
    }
    expect((await service.fetch('GET', `/sign-in/${provider}`)).status).toBe(401)
    expect(await service.app.db.selectFrom('provider_sign_ins').select('prefix').execute()).toEqual(before)
  })
})

it('one address verified by two providers is one account', async () => {
  const [one, other] = [await signIn('google'), await signIn('github')]
  expect((await whoIs(one.browser))?.id).toBe((await whoIs(other.browser))?.id)
  expect(await usersOf(email)).toHaveLength(1)
  expect(await creditsOf(other.browser)).toEqual([500])
})

it('the id of a person at one provider means nothing at the other', async () => {
  await signIn('google')
  github.people.set(person, {
    login: 'eve',
    name: null,
    emails: [{ email: `eve-${person}@example.test`, primary: true, verified: true }],
  })
  expect(await whoIs((await signIn('github')).browser)).toMatchObject({ email: `eve-${person}@example.test` })
})

it('the answer of one provider is refused for the other', async () => {
  const browser = openBrowser(service, person)
  const back = await goToProvider(browser, 'google')
  expect((await browser.get(back.replace('/sign-in/google', '/sign-in/github'))).status).toBe(401)
})

it('tokens, codes and secrets of a sign-in are neither stored nor logged in plain text', async () => {
  const { browser, answer } = await signIn('google')
  const waiting = openBrowser(service, person)
  const back = new URL(await goToProvider(waiting, 'google'))
  const secrets = [
    browser.cookie('berth_session'),
    waiting.cookie('berth_provider'),
    back.searchParams.get('code'),
    openId.client.clientSecret,
  ]
  expect(answer.status).toBe(303)
  const { db } = service.app
  const kept = JSON.stringify([
    await db.selectFrom('sessions').selectAll().execute(),
    await db.selectFrom('identities').selectAll().execute(),
    (await db.selectFrom('provider_sign_ins').selectAll().execute()).map((row) => ({
      ...row,
      sealed: row.sealed.toString('latin1'),
    })),
    service.logged,
  ])
  for (const secret of secrets) {
    expect(secret).toBeTruthy()
    expect(kept).not.toContain(secret)
  }
  expect(kept).not.toMatch(/nonce|codeVerifier/)
})

it('the cookie of a sign-in in progress is bound to the host over HTTPS', async () => {
  const signIn = { google: openId.client, github: null }
  const secure = await startService({ publicUrl: 'https://berth.example', signIn, loops: false })
  try {
    const headers = { origin: 'https://berth.example' }
    const answer = await secure.fetch('POST', '/sign-in/google', { headers })
    const [cookie, ...others] = answer.headers.getSetCookie()
    expect(others).toEqual([])
    expect(cookie).toMatch(
      /^__Host-berth_provider=berth_provider_\S+; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
    )
  } finally {
    await secure.close()
  }
})

it('a provider that is down returns 502, and one that is not configured 404', async () => {
  const away = { ...openId.client, url: 'http://127.0.0.1:1', apiUrl: 'http://127.0.0.1:1' }
  const other = await startService({ signIn: { google: away, github: null }, loops: false })
  try {
    const headers = { origin: 'http://berth.test' }
    expect((await other.fetch('POST', '/sign-in/google', { headers })).status).toBe(502)
    expect((await other.fetch('POST', '/sign-in/github', { headers })).status).toBe(404)
    const page = await (await other.fetch('GET', '/sign-in')).text()
    expect([page.includes('Google'), page.includes('GitHub')]).toEqual([true, false])
  } finally {
    await other.close()
  }
})
