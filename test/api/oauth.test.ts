// A person connects a client (spec 5.2, 5.9; reliability S8): from the address of the server alone to calls under the
// accepted policy, with a common client library.

import * as openid from 'openid-client'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { AgentList } from '../../src/contract/agent.ts'
import type { AuditList } from '../../src/contract/audit.ts'
import { makeMember, makeSession, makeSharedTeam, makeTeam, type TestTeam } from '../support/make.ts'
import {
  agree,
  authorizePath,
  connect,
  formOf,
  LOOPBACK,
  newPkce,
  nextOf,
  openConsent,
  postForm,
  redeem,
  refresh,
  registerClient,
  signedInBrowser,
} from '../support/oauth.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam
let cookie: string

beforeAll(async () => {
  service = await startService({ loops: false })
})
afterAll(async () => await service.close())
beforeEach(async () => {
  team = await makeTeam(service)
  cookie = await makeSession(service, team)
})

const own = () => ({ origin: service.baseUrl })
const agents = async () => (await service.call<AgentList>('GET', '/v1/agents', { key: team.key })).body
const agentOfTeam = async () => (await agents()).agents.find(({ kind }) => kind === 'oauth')

it('an OAuth client library connects, calls the API, refreshes and revokes its tokens', async () => {
  const issuer = 'http://berth.test'
  // The library knows the server by its name; here it is on a port of this host.
  const toService: openid.CustomFetch = (url, options) =>
    fetch(url.replace(issuer, service.baseUrl), { ...options, body: options.body as string })
  const config = await openid.dynamicClientRegistration(
    new URL(issuer),
    { client_name: 'Claude Code', redirect_uris: [LOOPBACK] },
    openid.None(),
    { algorithm: 'oauth2', execute: [openid.allowInsecureRequests], [openid.customFetch]: toService },
  )
  const verifier = openid.randomPKCECodeVerifier()
  const url = openid.buildAuthorizationUrl(config, {
    redirect_uri: LOOPBACK,
    scope: 'units offline_access',
    state: 'abc',
    resource: `${issuer}/mcp`,
    code_challenge: await openid.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
  })
  const browser = signedInBrowser(service, cookie)
  const page = await browser.get(await openConsent(browser, url.pathname + url.search))
  const form = formOf(await page.text())
  form.set('decision', 'connect')
  const next = nextOf(await (await browser.post('/oauth/consent', form)).text())
  const tokens = await openid.authorizationCodeGrant(config, new URL(next), {
    pkceCodeVerifier: verifier,
    expectedState: 'abc',
  })
  expect(tokens).toMatchObject({ token_type: 'bearer', expires_in: 3600, scope: 'units' })
  expect((await service.call('GET', '/v1/units', { key: tokens.access_token })).status).toBe(200)
  const later = await openid.refreshTokenGrant(config, tokens.refresh_token ?? '')
  expect(later.access_token).not.toBe(tokens.access_token)
  expect((await service.call('GET', '/v1/units', { key: later.access_token })).status).toBe(200)
  await openid.tokenRevocation(config, later.refresh_token ?? '')
  expect((await service.call('GET', '/v1/units', { key: later.access_token })).status).toBe(401)
})

it('the OAuth metadata names this server, and can be read by pages of any site', async () => {
  for (const path of ['', '/mcp']) {
    const answer = await service.fetch('GET', `/.well-known/oauth-protected-resource${path}`)
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
    expect(await answer.json()).toEqual({
      resource: 'http://berth.test/mcp',
      authorization_servers: ['http://berth.test'],
      scopes_supported: ['units'],
      bearer_methods_supported: ['header'],
      resource_name: 'Berth',
    })
  }
  const answer = await service.fetch('GET', '/.well-known/oauth-authorization-server')
  expect(await answer.json()).toMatchObject({
    issuer: 'http://berth.test',
    authorization_endpoint: 'http://berth.test/oauth/authorize',
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: ['none'],
    authorization_response_iss_parameter_supported: true,
    client_id_metadata_document_supported: false,
  })
  const preflight = await service.fetch('OPTIONS', '/oauth/token', {
    headers: { origin: 'https://inspector.test' },
  })
  expect([preflight.status, preflight.headers.get('access-control-allow-origin')]).toEqual([204, '*'])
})

describe('a connected agent', () => {
  it('is listed with its client and the accepted policy, and takes a seat', async () => {
    const before = (await agents()).seats.used
    const changes = {
      name: 'my laptop',
      maxConcurrentUnits: '1',
      dailySpendCap: '0.10',
      allowedRegistries: 'ghcr.io\nquay.io',
      maxSleep: '2h',
      expiresAt: '2099-01-02T03:04:05',
    }
    const { client } = await connect(service, cookie, { changes })
    expect((await agents()).seats.used).toBe(before + 1)
    expect(await agentOfTeam()).toMatchObject({
      kind: 'oauth',
      name: 'my laptop',
      prefix: null,
      policy: {
        maxConcurrentUnits: 1,
        dailySpendCapCents: 10,
        allowedSizes: ['nano', 'small', 'medium'],
        allowedRegistries: ['ghcr.io', 'quay.io'],
        maxSleep: '2h',
        expiresAt: '2099-01-02T03:04:05.000Z',
      },
      client: { id: client.id, name: 'Test Agent', uri: null, icon: null },
      createdBy: { name: 'Person', email: team.email },
      connectedAt: expect.any(String),
      lastUsedAt: null,
      revokedAt: null,
    })
    const log = await service.call<AuditList>('GET', '/v1/audit', { cookie })
    expect(log.body.events.filter(({ action }) => action === 'agent.connect')).toMatchObject([
      { target: (await agentOfTeam())?.id, input: { client: client.id, name: 'my laptop' }, status: 201 },
    ])
  })

  it('is bounded by its policy, and audited under its own name', async () => {
    const client = await registerClient(service, { name: 'Claude Code (berth)' })
    const { tokens } = await connect(service, cookie, {
      client,
      changes: { maxConcurrentUnits: '1', name: 'helper' },
    })
    const key = tokens.access_token
    const create = async (name: string) =>
      await service.call('POST', '/v1/units', { key, body: { spec: { name, image: 'node:22' } } })
    expect((await create('first')).status).toBe(201)
    expect(await create('second')).toMatchObject({ status: 402, body: { error: { code: 'quota_exceeded' } } })
    await service.call('GET', '/v1/units', { key, headers: { 'user-agent': 'codex/1.2' } })
    const log = await service.call<AuditList>('GET', '/v1/audit', { key: team.key })
    const [listed, , created] = log.body.events.filter(({ credential }) => credential.kind === 'oauth')
    expect(created).toMatchObject({ agentName: 'claude-code', credential: { name: 'helper' }, via: 'api' })
    expect(listed).toMatchObject({ agentName: 'codex', agentVersion: '1.2' })
  })

  it('stays one agent with one seat when its client registers and signs in again', async () => {
    for (const port of ['1111', '2222']) {
      const redirectUri = `http://localhost:${port}/callback`
      const client = await registerClient(service, { name: 'mcp-remote', redirectUri })
      await connect(service, cookie, { client, changes: { maxConcurrentUnits: port } })
    }
    const { agents: all, seats } = await agents()
    const connected = all.filter(({ kind }) => kind === 'oauth')
    expect(connected).toHaveLength(1)
    expect(connected[0]?.policy.maxConcurrentUnits).toBe(2222)
    expect(seats.used).toBe(2)
  })

  it('can be changed and revoked by its person, at once', async () => {
    const { tokens, client } = await connect(service, cookie)
    const { id = '' } = (await agentOfTeam()) ?? {}
    const by = { cookie, headers: own() }
    const changed = await service.call('PATCH', `/v1/agents/${id}`, {
      ...by,
      body: { name: 'renamed', policy: { allowedSizes: [] } },
    })
    expect(changed).toMatchObject({ status: 200, body: { agent: { name: 'renamed', kind: 'oauth' } } })
    const key = tokens.access_token
    const body = { spec: { name: 'x', image: 'node:22' } }
    expect(await service.call('POST', '/v1/units', { key, body })).toMatchObject({ status: 402 })
    expect((await service.call('DELETE', `/v1/agents/${id}`, by)).status).toBe(200)
    expect((await service.call('GET', '/v1/units', { key })).status).toBe(401)
    expect(await refresh(service, client, tokens.refresh_token)).toMatchObject({
      status: 400,
      body: { error: 'invalid_grant' },
    })
  })
})

describe('the consent page', () => {
  it('is shown after the sign-in, in the browser that the client opened', async () => {
    const client = await registerClient(service)
    const browser = signedInBrowser(service, 'berth_session=none')
    browser.setCookie('berth_session', '')
    const consent = await openConsent(browser, authorizePath(client, newPkce().challenge))
    const sent = await browser.get(consent)
    expect([sent.status, sent.headers.get('location')]).toEqual([303, '/sign-in'])
    expect(await (await browser.get('/sign-in')).text()).toContain('wants to connect')
    await browser.post('/sign-in/link', { email: team.email })
    const [mail] = await service.mailTo(team.email)
    const token = /token=(\S+)/.exec(mail?.text ?? '')?.[1] ?? ''
    const signedIn = await browser.post('/sign-in', { token })
    expect(signedIn.headers.get('location')).toBe(consent)
    const page = await (await browser.get(consent)).text()
    expect(page).toContain(team.email)
    expect(page).toContain('Test Agent')
  })

  it('is shown for each connection, and a refusal is reported to the client', async () => {
    const client = await registerClient(service)
    const browser = signedInBrowser(service, cookie)
    await agree(browser, client)
    const consent = await openConsent(browser, authorizePath(client, newPkce().challenge))
    const page = await (await browser.get(consent)).text()
    expect(page).toContain('is connected to this team already')
    const form = formOf(page)
    form.set('decision', 'cancel')
    const next = new URL(nextOf(await (await browser.post('/oauth/consent', form)).text()))
    expect(Object.fromEntries(next.searchParams)).toMatchObject({
      error: 'access_denied',
      state: 'the state',
      iss: 'http://berth.test',
    })
    expect((await browser.get(consent)).status).toBe(409)
  })

  it('selects the team, which the agent is limited to', async () => {
    const shared = await makeSharedTeam(service)
    const member = await makeMember(service, shared.id, 'member')
    const browser = signedInBrowser(service, member.cookie)
    const client = await registerClient(service)
    const { verifier, challenge } = newPkce()
    const consent = await openConsent(browser, authorizePath(client, challenge))
    expect(await (await browser.get(consent)).text()).toContain(`team=${shared.id}`)
    const form = formOf(await (await browser.get(`${consent}&team=${shared.id}`)).text())
    expect(form.get('team')).toBe(shared.id)
    form.set('decision', 'connect')
    const next = nextOf(await (await browser.post('/oauth/consent', form)).text())
    const code = new URL(next).searchParams.get('code') ?? ''
    const { body } = await redeem(service, client, { code, verifier })
    const listed = await service.call<AgentList>('GET', '/v1/agents', { key: body.access_token })
    expect(listed.body.agents).toMatchObject([{ kind: 'oauth', createdBy: { email: member.email } }])
    const elsewhere = { key: body.access_token, headers: { 'x-berth-team': team.teamId } }
    expect((await service.call('GET', '/v1/units', elsewhere)).status).toBe(403)
  })

  it('is shown again with the input and the reason when a field is invalid', async () => {
    const client = await registerClient(service)
    const browser = signedInBrowser(service, cookie)
    const consent = await openConsent(browser, authorizePath(client, newPkce().challenge))
    const wrong: [string, string, string][] = [
      ['maxConcurrentUnits', 'many', 'whole number'],
      ['dailySpendCap', '-1', 'amount in euros'],
      ['maxSleep', '90', 'followed by m, h or d'],
      ['expiresAt', '2001-01-01T00:00:00', 'later than now'],
      ['allowedSizes', 'huge', 'must be one of'],
      ['name', '', 'must not be empty'],
    ]
    for (const [field, value, why] of wrong) {
      const form = formOf(await (await browser.get(consent)).text())
      form.set('decision', 'connect')
      form.set(field, value)
      const answer = await browser.post('/oauth/consent', form)
      const html = await answer.text()
      expect([answer.status, field, html.includes(why)]).toEqual([400, field, true])
      if (field !== 'allowedSizes') expect(formOf(html).get(field)).toBe(value)
    }
    expect(await agentOfTeam()).toBeUndefined()
  })

  it.each([
    ['hobby', 600, '300', '21.60'],
    ['pro', 3000, '1500', '108.00'],
    ['team', 30_000, '15000', '1080.00'],
  ] as const)(
    'says what the plan “%s” limits, and takes no number beyond it',
    async (plan, diskGb, units, euros) => {
      const { db } = service.app
      await db.updateTable('teams').set({ plan }).where('id', '=', team.teamId).execute()
      const client = await registerClient(service)
      const browser = signedInBrowser(service, cookie)
      const consent = await openConsent(browser, authorizePath(client, newPkce().challenge))
      const page = await (await browser.get(consent)).text()
      expect(page).toContain(`The team has the plan “${plan}”, which limits it too`)
      expect(page).toContain(`have ${diskGb} GB together`)
      expect(page.includes('A unit that never sleeps needs the Pro plan')).toBe(plan === 'hobby')
      const most = { maxConcurrentUnits: units, dailySpendCap: euros }
      const beyond: [keyof typeof most, string][] = [
        ['maxConcurrentUnits', `${Number(units) + 1}`],
        ['maxConcurrentUnits', '999999999'],
        ['maxConcurrentUnits', '9'.repeat(400)],
        ['dailySpendCap', (Number(euros) + 0.01).toFixed(2)],
        ['dailySpendCap', '999999999'],
        ['dailySpendCap', `${'9'.repeat(400)},99`],
      ]
      for (const [field, value] of beyond) {
        const form = formOf(page)
        form.set('decision', 'connect')
        form.set(field, value)
        const answer = await browser.post('/oauth/consent', form)
        const html = await answer.text()
        expect([answer.status, value, formOf(html).get(field)]).toEqual([400, value, value])
        const [, wrong] = /<span class="wrong" role="alert">([^<]*)</.exec(html) ?? []
        expect(wrong).toContain(`must be at most ${most[field]}: `)
        expect(wrong).toContain(`${diskGb} GB of disk`)
      }
      expect(await agentOfTeam()).toBeUndefined()
      await agree(browser, client, { changes: most })
      expect((await agentOfTeam())?.policy).toMatchObject({
        maxConcurrentUnits: Number(units),
        dailySpendCapCents: Math.round(Number(euros) * 100),
      })
    },
  )

  it('refuses further agents when the plan has no seat left, also for concurrent requests', async () => {
    const { db } = service.app
    await db.updateTable('teams').set({ plan: 'hobby' }).where('id', '=', team.teamId).execute()
    const one = async (index: number) => {
      const client = await registerClient(service, { name: `Agent ${index}` })
      const browser = signedInBrowser(service, cookie)
      const consent = await openConsent(browser, authorizePath(client, newPkce().challenge))
      const form = formOf(await (await browser.get(consent)).text())
      form.set('decision', 'connect')
      return async () => await browser.post('/oauth/consent', form)
    }
    const ready = await Promise.all(Array.from({ length: 8 }, (_, index) => one(index)))
    const answers = await Promise.all(ready.map((post) => post()))
    expect(answers.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([
      200, 200, 200, 200, 402, 402, 402, 402,
    ])
    expect((await agents()).seats).toEqual({ used: 5, max: 5 })
  })
})

it('a client can revoke its tokens by either of them, and another client cannot', async () => {
  const stranger = await registerClient(service)
  for (const which of ['access_token', 'refresh_token'] as const) {
    const { client, tokens } = await connect(service, cookie)
    const revoke = async (clientId: string) =>
      await postForm(service, '/oauth/revoke', { client_id: clientId, token: tokens[which] })
    expect((await revoke(stranger.id)).status).toBe(200)
    expect((await service.call('GET', '/v1/units', { key: tokens.access_token })).status).toBe(200)
    expect((await revoke(client.id)).status).toBe(200)
    expect((await service.call('GET', '/v1/units', { key: tokens.access_token })).status).toBe(401)
    expect((await refresh(service, client, tokens.refresh_token)).status).toBe(400)
  }
  expect((await agentOfTeam())?.revokedAt).toBeNull()
})
