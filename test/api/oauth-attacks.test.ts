// Reliability S8 and S11: attacks on the authorization of a client by a party between, beside or behind it. Each ends
// in a clear error without a second effect, and nothing is sent to an address that was not registered.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { AgentList } from '../../src/contract/agent.ts'
import { MINUTE } from '../../src/lib/clock.ts'
import type { Browser } from '../support/browser.ts'
import { makeSession, makeTeam, type TestTeam } from '../support/make.ts'
import {
  agree,
  authorizePath,
  formOf,
  newPkce,
  nextOf,
  openConsent,
  postForm,
  redeem,
  refresh,
  registerClient,
  signedInBrowser,
  type TestClient,
} from '../support/oauth.ts'
import { type Service, startService } from '../support/service.ts'

const SITE = 'https://app.example/cb'

let service: Service
let team: TestTeam
let cookie: string
let browser: Browser
let client: TestClient
let site: TestClient

beforeAll(async () => {
  service = await startService({ loops: false })
  client = await registerClient(service)
  site = await registerClient(service, { redirectUri: SITE, name: 'Site' })
})
afterAll(async () => await service.close())
beforeEach(async () => {
  team = await makeTeam(service)
  cookie = await makeSession(service, team)
  browser = signedInBrowser(service, cookie)
})

const requests = async () =>
  (await service.app.db.selectFrom('oauth_requests').select('prefix').execute()).length
const connected = async () => {
  const { body } = await service.call<AgentList>('GET', '/v1/agents', { key: team.key })
  return body.agents.filter(({ kind }) => kind === 'oauth')
}
const works = async (key: string) => (await service.call('GET', '/v1/units', { key })).status === 200
const pathOf = (changes: Record<string, string | null>, of = client) =>
  authorizePath(of, newPkce().challenge, changes)

describe('an authorization request whose answer could reach another party', () => {
  it.each([
    ['of an unknown client', { client_id: 'client_00000000000000000000000000000000' }],
    ['without a client', { client_id: null }],
    ['of a client that is no text of ours', { client_id: '\0\u202e%' }],
    ['with a site that was not registered', { redirect_uri: 'https://evil.example/cb' }],
    ['with a longer host', { redirect_uri: 'https://app.example.evil.example/cb' }],
    ['with another path', { redirect_uri: 'https://app.example/cb/../x' }],
    ['with an added parameter', { redirect_uri: `${SITE}?next=https://evil.example` }],
    ['with a user in it', { redirect_uri: 'https://app.example@evil.example/cb' }],
    ['with a fragment', { redirect_uri: `${SITE}#` }],
    ['with another case', { redirect_uri: 'https://app.example/CB' }],
    ['with a port', { redirect_uri: 'https://app.example:444/cb' }],
    ['with a script', { redirect_uri: 'javascript:alert(1)' }],
  ])('%s shows an error page, and redirects nowhere', async (_title, changes) => {
    const before = await requests()
    const answer = await browser.get(pathOf(changes, site))
    expect([answer.status, answer.headers.get('location')]).toEqual([400, null])
    const html = await answer.text()
    expect(html).not.toContain('http-equiv')
    expect(html).not.toMatch(/href="[^/"]/)
    expect(await requests()).toBe(before)
  })

  it('is refused when it names a field twice', async () => {
    for (const field of ['redirect_uri', 'client_id', 'code_challenge', 'state']) {
      const answer = await browser.get(`${pathOf({}, site)}&${field}=x`)
      expect([field, answer.status]).toEqual([field, 400])
    }
  })
})

describe('an invalid authorization request', () => {
  const faults: [string, Record<string, string | null>, string][] = [
    ['without PKCE', { code_challenge: null, code_challenge_method: null }, 'invalid_request'],
    ['with plain PKCE', { code_challenge_method: 'plain' }, 'invalid_request'],
    ['with PKCE of no method', { code_challenge_method: null }, 'invalid_request'],
    ['with a short challenge', { code_challenge: 'abc' }, 'invalid_request'],
    ['for a token at once', { response_type: 'token' }, 'unsupported_response_type'],
    ['in a fragment', { response_mode: 'fragment' }, 'invalid_request'],
    ['for another resource', { resource: 'https://evil.example/mcp' }, 'invalid_target'],
    ['for another scope', { scope: 'openid admin' }, 'invalid_scope'],
    ['without a person', { prompt: 'none' }, 'interaction_required'],
    ['with a request object', { request: 'eyJ' }, 'request_not_supported'],
    ['with a request elsewhere', { request_uri: 'https://evil.example/r' }, 'request_uri_not_supported'],
  ]
  it.each(faults)('%s is reported to the client, with state and issuer', async (_title, changes, error) => {
    const answer = await browser.get(pathOf(changes))
    expect(answer.status).toBe(303)
    const back = new URL(answer.headers.get('location') ?? '')
    expect(back.origin + back.pathname).toBe(client.redirectUri)
    expect(Object.fromEntries(back.searchParams)).toMatchObject({
      error,
      state: 'the state',
      iss: 'http://berth.test',
    })
    expect(back.searchParams.get('code')).toBeNull()
  })

  it('is reported to a site by a link that names it, and not by a redirect', async () => {
    const answer = await browser.get(pathOf({ response_type: 'token' }, site))
    expect([answer.status, answer.headers.get('location')]).toEqual([400, null])
    const html = await answer.text()
    expect(html).toContain('Go back to app.example')
    expect(html).not.toContain('http-equiv')
  })
})

describe('an authorization code', () => {
  it('is refused with a wrong verifier, client, redirect or code', async () => {
    const agreed = await agree(browser, client)
    const other = await registerClient(service)
    for (const [by, changes] of [
      [client, { code_verifier: newPkce().verifier }],
      [client, { code_verifier: agreed.verifier.slice(0, 42) }],
      [other, {}],
      [client, { redirect_uri: 'http://127.0.0.1:1/callback' }],
      [client, { code: `${agreed.code.slice(0, -1)}${agreed.code.endsWith('A') ? 'B' : 'A'}` }],
    ] as const) {
      const answer = await redeem(service, by, agreed, changes)
      expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
    }
    const elsewhere = await redeem(service, client, agreed, { resource: 'https://evil.example' })
    expect(elsewhere).toMatchObject({ status: 400, body: { error: 'invalid_target' } })
    // None of these attempts has used it up.
    expect((await redeem(service, client, agreed)).status).toBe(200)
  })

  it('cannot be redeemed without its verifier', async () => {
    const { code } = await agree(browser, client)
    const fields = { grant_type: 'authorization_code', client_id: client.id, code }
    expect(await postForm(service, '/oauth/token', fields)).toMatchObject({
      status: 400,
      body: { error: 'invalid_request' },
    })
  })

  it('expires after a minute', async () => {
    const agreed = await agree(browser, client)
    service.clock.advance(MINUTE)
    expect(await redeem(service, client, agreed)).toMatchObject({
      status: 400,
      body: { error: 'invalid_grant' },
    })
  })

  it('that is redeemed again revokes the tokens it gave', async () => {
    const agreed = await agree(browser, client)
    const { body: tokens } = await redeem(service, client, agreed)
    expect(await works(tokens.access_token)).toBe(true)
    // Without the verifier nothing is proven, and nothing ends.
    await redeem(service, client, { ...agreed, verifier: newPkce().verifier })
    expect(await works(tokens.access_token)).toBe(true)
    expect((await redeem(service, client, agreed)).status).toBe(400)
    expect(await works(tokens.access_token)).toBe(false)
    expect((await refresh(service, client, tokens.refresh_token)).status).toBe(400)
    expect(await connected()).toMatchObject([{ revokedAt: null }])
  })

  it('can be redeemed by one of fifty concurrent calls, whose tokens are revoked then', async () => {
    const agreed = await agree(browser, client)
    const answers = await Promise.all(Array.from({ length: 50 }, () => redeem(service, client, agreed)))
    const won = answers.filter(({ status }) => status === 200)
    expect(won).toHaveLength(1)
    expect(answers.filter(({ body }) => body.error === 'invalid_grant')).toHaveLength(49)
    expect(await works(won[0]?.body.access_token ?? '')).toBe(false)
    const families = service.app.db
      .selectFrom('oauth_families')
      .innerJoin('credentials', 'credentials.id', 'credential_id')
      .select('oauth_families.id')
      .where('team_id', '=', team.teamId)
    expect(await families.execute()).toHaveLength(1)
  })
})

describe('the consent form', () => {
  const opened = async () => {
    const consent = await openConsent(browser, pathOf({}))
    const form = formOf(await (await browser.get(consent)).text())
    form.set('decision', 'connect')
    return { consent, form }
  }

  it('works only in the session that opened it', async () => {
    const { consent, form } = await opened()
    const eve = signedInBrowser(service, await makeSession(service, await makeTeam(service)))
    expect((await eve.get(consent)).status).toBe(409)
    expect((await eve.post('/oauth/consent', form)).status).toBe(409)
    form.set('decision', 'cancel')
    expect((await eve.post('/oauth/consent', form)).status).toBe(409)
    form.set('decision', 'connect')
    expect((await browser.post('/oauth/consent', form)).status).toBe(200)
  })

  it('is accepted once out of twenty concurrent submissions', async () => {
    const { form } = await opened()
    const answers = await Promise.all(Array.from({ length: 20 }, () => browser.post('/oauth/consent', form)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(19)
    expect(await connected()).toHaveLength(1)
  })

  it('connects nothing to a team of other people', async () => {
    const foreign = await makeTeam(service)
    for (const [name, status] of [
      [foreign.teamId, 403],
      ['team_00000000000000000000000000000000', 404],
      ['x\0', 400],
    ]) {
      const { form } = await opened()
      form.set('team', String(name))
      expect((await browser.post('/oauth/consent', form)).status).toBe(status)
    }
    expect(await connected()).toEqual([])
  })

  it('connects the client that requested it, with any other fields sent', async () => {
    const { form } = await opened()
    form.set('client', site.id)
    form.set('redirect_uri', 'https://evil.example/cb')
    const next = new URL(nextOf(await (await browser.post('/oauth/consent', form)).text()))
    expect(next.origin + next.pathname).toBe(client.redirectUri)
    expect(await connected()).toMatchObject([{ client: { id: client.id } }])
  })

  it('is refused or accepted with arbitrary fields, and causes no fault', async () => {
    const strange = [
      '\0',
      '\ud800',
      '<script>',
      '9'.repeat(400),
      '\u202e',
      "'; drop table units; --",
      '1e9',
      '-0',
    ]
    const fields = [
      'name',
      'maxConcurrentUnits',
      'dailySpendCap',
      'allowedSizes',
      'allowedRegistries',
      'maxSleep',
      'expiresAt',
    ]
    for (const field of fields) {
      for (const value of strange) {
        const { form } = await opened()
        form.set(field, value)
        const answer = await browser.post('/oauth/consent', form)
        expect([200, 400], `${field} ${JSON.stringify(value)}`).toContain(answer.status)
        expect(await answer.text()).not.toContain('<script>')
      }
    }
    const { form } = await opened()
    form.set('name', 'x'.repeat(20_000))
    expect((await browser.post('/oauth/consent', form)).status).toBe(413)
  })

  it('has no effect from another site or without a session', async () => {
    const { form } = await opened()
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const post = async (more: Record<string, string>, as?: string) =>
      await service.fetch('POST', '/oauth/consent', {
        body: form.toString(),
        headers: { ...headers, ...more },
        ...(as === undefined ? {} : { cookie: as }),
      })
    expect((await post({ origin: 'https://evil.example' }, cookie)).status).toBe(403)
    expect((await post({ origin: 'null' }, cookie)).status).toBe(403)
    expect((await post({ origin: service.baseUrl })).status).toBe(401)
    // An agent cannot connect another one, neither by a key nor by a token of its own.
    expect((await post({ origin: service.baseUrl, authorization: `Bearer ${team.key}` })).status).toBe(401)
    expect(
      (await post({ origin: service.baseUrl, authorization: `Bearer ${team.key}` }, cookie)).status,
    ).toBe(403)
    expect(await connected()).toEqual([])
  })

  it('has one audit row for each submission, with the client and the accepted policy', async () => {
    const rowsOf = async () =>
      await service.app.db
        .selectFrom('audit')
        .select(['status', 'input'])
        .where('status', 'is not', null)
        .where('team_id', '=', team.teamId)
        .where('action', '=', 'agent.connect')
        .orderBy('status')
        .execute()
    const tampered = [
      { maxConcurrentUnits: '-1' },
      { maxConcurrentUnits: '1e9' },
      { allowedSizes: 'gigantic' },
      { ticket: 'berth_oticket_unknown' },
      { client: 'client_00000000000000000000000000000000' },
      {},
    ]
    const answered: number[] = []
    for (const changes of tampered) {
      const { form } = await opened()
      for (const [name, value] of Object.entries(changes)) form.set(name, value)
      answered.push((await browser.post('/oauth/consent', form)).status)
    }
    expect(answered).toEqual([400, 400, 400, 409, 200, 200])
    const rows = await rowsOf()
    expect(rows.map(({ status }) => status)).toEqual([201, 201, 400, 400, 400, 409])
    expect(rows[0]?.input).toMatchObject({ client: client.id, policy: { maxConcurrentUnits: 5 } })
  })

  it('expires after a quarter of an hour', async () => {
    const { form, consent } = await opened()
    service.clock.advance(15 * MINUTE)
    expect((await browser.get(consent)).status).toBe(409)
    expect((await browser.post('/oauth/consent', form)).status).toBe(409)
  })
})

it('a client with the name and redirect of a connected one needs its own consent', async () => {
  await agree(browser, client)
  const twin = await registerClient(service)
  const page = await browser.get(await openConsent(browser, authorizePath(twin, newPkce().challenge)))
  expect([page.status, formOf(await page.text()).get('ticket')]).toEqual([200, expect.any(String)])
})

it('a session is not a bearer token, and a token not a session', async () => {
  const agreed = await agree(browser, client)
  const { body } = await redeem(service, client, agreed)
  const session = cookie.split('=')[1] ?? ''
  for (const key of [session, agreed.code, body.refresh_token]) expect(await works(key)).toBe(false)
  const asCookie = await service.call('GET', '/v1/units', { cookie: `berth_session=${body.access_token}` })
  expect(asCookie.status).toBe(401)
  expect((await service.call('GET', '/v1/me', { key: body.access_token })).status).toBe(403)
})

describe('the token endpoint', () => {
  it('returns the errors of OAuth', async () => {
    const good = { grant_type: 'refresh_token', client_id: client.id, refresh_token: 'x' }
    const cases: [Record<string, string>, Record<string, string>, number, string][] = [
      [{}, {}, 400, 'invalid_request'],
      [{ grant_type: 'password', client_id: client.id }, {}, 400, 'unsupported_grant_type'],
      [{ ...good, client_id: '' }, {}, 400, 'invalid_request'],
      [good, {}, 400, 'invalid_grant'],
      [good, { authorization: 'Basic eDp5' }, 401, 'invalid_client'],
      [good, { 'content-type': 'application/json' }, 400, 'invalid_request'],
      [{ ...good, refresh_token: 'x'.repeat(20_000) }, {}, 413, 'invalid_request'],
      [{ ...good, refresh_token: '\0' }, {}, 400, 'invalid_grant'],
    ]
    for (const [fields, headers, status, error] of cases) {
      const answer = await postForm(service, '/oauth/token', fields, headers)
      expect([answer.status, answer.body.error]).toEqual([status, error])
      expect(answer.body.error_description).toMatch(/^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/)
      expect(answer.headers.get('cache-control')).toBe('no-store')
      expect(answer.headers.get('x-request-id')).toMatch(/^req_/)
    }
    const twice = await service.fetch('POST', '/oauth/token', {
      body: `grant_type=refresh_token&client_id=a&client_id=${client.id}&refresh_token=x`,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    })
    expect(twice.status).toBe(400)
  })

  it('limits the rate of wrong tokens', async () => {
    const guess = () => refresh(service, client, `berth_ort_${'0'.repeat(12)}_${'A'.repeat(43)}`)
    const answers = await Promise.all(Array.from({ length: 140 }, guess))
    const refused = answers.find(({ status }) => status === 429)
    expect(refused?.body.error).toBe('temporarily_unavailable')
    expect(Number(refused?.headers.get('retry-after'))).toBeGreaterThan(0)
    service.clock.advance(MINUTE)
    expect((await guess()).status).toBe(400)
  })
})
