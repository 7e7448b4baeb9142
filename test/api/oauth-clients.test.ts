// Which clients may ask to be connected, and what of their description is trusted: clients that register
// (reliability S9, S24), and clients that are described by a document which the server fetches (reliability S10).

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { DAY, HOUR, MINUTE } from '../../src/lib/clock.ts'
import { dialPublic } from '../../src/lib/dial.ts'
import { createPublicFetch, type PublicFetch } from '../../src/lib/public-fetch.ts'
import { deleteSurplusClients } from '../../src/store/oauth-clients.ts'
import type { Browser } from '../support/browser.ts'
import { type DocumentSite, startDocumentSite } from '../support/client-documents.ts'
import { makeSession, makeTeam } from '../support/make.ts'
import {
  agree,
  authorizePath,
  LOOPBACK,
  newPkce,
  openConsent,
  postJson,
  redeem,
  registerClient,
  signedInBrowser,
} from '../support/oauth.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let site: DocumentSite
let browser: Browser
/** The server’s outgoing requests; a test may replace the function. */
let goOut: PublicFetch

beforeAll(async () => {
  site = await startDocumentSite()
  service = await startService({ loops: false, clientMetadata: true, fetchPublic: (url) => goOut(url) })
})
afterAll(async () => {
  await service.close()
  await site.close()
})
beforeEach(async () => {
  goOut = site.fetchPublic
  site.asked.length = 0
  browser = signedInBrowser(service, await makeSession(service, await makeTeam(service)))
  // The limits count by address, and each test stands for another address.
  await service.app.db.deleteFrom('allowances').execute()
})

type Registered = { client_id?: string; redirect_uris?: string[]; client_name?: string; error?: string }
const register = async (metadata: unknown) => await postJson<Registered>(service, '/oauth/register', metadata)
const consentOf = async (id: string, redirectUri: string) => {
  const path = authorizePath({ id, redirectUri }, newPkce().challenge)
  return await (await browser.get(await openConsent(browser, path))).text()
}

describe('POST /oauth/register', () => {
  it('registers a client with what Berth supports of the request', async () => {
    const answer = await register({
      client_name: 'Cursor',
      redirect_uris: [
        'cursor://anysphere.cursor-mcp/oauth/callback',
        'https://www.cursor.com/agents/mcp/oauth/callback',
        'http://localhost:8787/callback',
        'javascript:alert(1)',
        'http://evil.example/cb',
      ],
      grant_types: ['authorization_code', 'urn:ietf:params:oauth:grant-type:device_code'],
      token_endpoint_auth_method: 'client_secret_post',
      application_type: 'web',
      scope: 'openid profile',
    })
    expect(answer).toMatchObject({
      status: 201,
      body: {
        client_name: 'Cursor',
        redirect_uris: [
          'cursor://anysphere.cursor-mcp/oauth/callback',
          'https://www.cursor.com/agents/mcp/oauth/callback',
          'http://localhost:8787/callback',
        ],
        grant_types: ['authorization_code', 'refresh_token'],
        token_endpoint_auth_method: 'none',
        scope: 'units',
      },
    })
    expect(answer.body).not.toHaveProperty('client_secret')
    const page = await consentOf(answer.body.client_id ?? '', 'cursor://anysphere.cursor-mcp/oauth/callback')
    expect(page).toContain('the app cursor:')
  })

  it.each([
    [
      'invalid_redirect_uri',
      { redirect_uris: ['javascript:alert(1)', 'data:text/html,x', 'http://evil.example'] },
    ],
    ['invalid_redirect_uri', { redirect_uris: [] }],
    ['invalid_redirect_uri', { redirect_uris: 'https://a.example' }],
    ['invalid_redirect_uri', { redirect_uris: ['https://*.example/cb'] }],
    ['invalid_redirect_uri', {}],
    ['invalid_client_metadata', { redirect_uris: [LOOPBACK], client_name: 7 }],
    ['invalid_client_metadata', { redirect_uris: [LOOPBACK], client_name: 'x'.repeat(2001) }],
    ['invalid_client_metadata', 'no JSON'],
    ['invalid_client_metadata', [1]],
    ['invalid_client_metadata', null],
  ])('refuses with %s: %j', async (error, metadata) => {
    expect(await register(metadata)).toMatchObject({ status: 400, body: { error } })
  })

  it('stores a name as plain text of one line, with a bounded length', async () => {
    const name = `<img src=x onerror=alert(1)>\u202e\u200b\n${'long '.repeat(200)}\0\ud800`
    const answer = await register({
      client_name: name,
      redirect_uris: [LOOPBACK],
      logo_uri: 'https://x.example/a.svg',
    })
    expect(answer.status).toBe(201)
    expect(answer.body.client_name?.length).toBeLessThanOrEqual(80)
    expect(answer.body.client_name).toMatch(/^<img src=x onerror=alert\(1\)> long/)
    const page = await consentOf(answer.body.client_id ?? '', LOOPBACK)
    expect(page).not.toContain('<img')
    expect(page).not.toContain('x.example')
  })

  it('accepts the name of a known client, and the consent page warns when its redirect leaves the computer', async () => {
    const away = await registerClient(service, {
      name: 'Claude Code',
      redirectUri: 'https://evil.example/cb',
    })
    const page = await consentOf(away.id, away.redirectUri)
    expect(page).toContain('Anyone can call a program Claude Code')
    expect(page).toContain('it registered itself')
    const here = await registerClient(service, { name: 'Claude Code' })
    expect(await consentOf(here.id, here.redirectUri)).not.toContain('Anyone can call')
  })

  // Five thousand calls take a while on a busy machine.
  it('accepts a hundred registrations an hour from one address', { timeout: 180_000 }, async () => {
    // The registrations of earlier tests count no more.
    service.clock.advance(HOUR)
    let [made, refused] = [0, 0]
    for (let round = 0; round < 3; round++) {
      const metadata = { client_name: 'x', redirect_uris: [LOOPBACK] }
      const answers = await Promise.all(Array.from({ length: 100 }, () => register(metadata)))
      made += answers.filter(({ status }) => status === 201).length
      refused += answers.filter(({ status }) => status === 429).length
    }
    expect([made, refused]).toEqual([100, 200])
    service.clock.advance(HOUR)
    expect((await register({ redirect_uris: [LOOPBACK] })).status).toBe(201)
  })

  it('deletes old clients beyond a limit, but none that is connected', async () => {
    const connected = await registerClient(service)
    await redeem(service, connected, await agree(browser, connected))
    service.clock.advance(MINUTE)
    const older = await registerClient(service)
    service.clock.advance(MINUTE)
    const newer = await registerClient(service)
    await deleteSurplusClients(service.app.db, 1)
    const statusOf = async (id: string) =>
      (await browser.get(authorizePath({ id, redirectUri: LOOPBACK }, newPkce().challenge))).status
    expect([await statusOf(connected.id), await statusOf(older.id), await statusOf(newer.id)]).toEqual([
      303, 400, 303,
    ])
  })
})

const REDIRECT = 'http://localhost:1234/callback'
/** Publishes a client document, and returns the client id. */
function publish(
  path: string,
  changes: Record<string, unknown> = {},
  headers: Record<string, string> = {},
): string {
  const id = `https://${site.host}${path}`
  const document = {
    client_id: id,
    client_name: 'Claude Code',
    redirect_uris: ['http://localhost/callback'],
    ...changes,
  }
  site.answers.set(path, { body: JSON.stringify(document), headers })
  return id
}
const open = async (id: string) =>
  await browser.get(authorizePath({ id, redirectUri: REDIRECT }, newPkce().challenge))

describe('a client that is described by a document', () => {
  it('is connected with any loopback port, and shown with the host of the document', async () => {
    const metadata = await service.fetch('GET', '/.well-known/oauth-authorization-server')
    expect(await metadata.json()).toMatchObject({ client_id_metadata_document_supported: true })
    const client = { id: publish('/agent.json'), redirectUri: REDIRECT }
    const page = await consentOf(client.id, REDIRECT)
    expect(page).toContain(`<strong>${site.host}</strong> describes it`)
    const { status, body } = await redeem(service, client, await agree(browser, client))
    expect(status).toBe(200)
    expect((await service.call('GET', '/v1/units', { key: body.access_token })).status).toBe(200)
  })

  it('is accepted with the fields that real clients send', async () => {
    const plural = {
      token_endpoint_auth_method: 'private_key_jwt',
      token_endpoint_auth_methods_supported: ['none'],
    }
    expect((await open(publish('/plural.json', plural))).status).toBe(303)
    const native = {
      application_type: 'web',
      grant_types: ['authorization_code'],
      logo_uri: 'https://a.test/x.svg',
    }
    expect(
      (await open(publish('/more.json', native, { 'content-type': 'application/json; charset=utf-8' })))
        .status,
    ).toBe(303)
    // Nothing else is fetched, and no picture.
    expect(site.asked).toEqual(['/plural.json', '/more.json'])
  })

  it('is fetched once for concurrent requests, again after five minutes, and cached for a day when unavailable', async () => {
    const id = publish('/kept.json')
    await Promise.all(Array.from({ length: 10 }, () => open(id)))
    expect(site.asked).toEqual(['/kept.json'])
    service.clock.advance(5 * MINUTE)
    await open(id)
    expect(site.asked).toHaveLength(2)
    site.answers.set('/kept.json', { status: 500, body: '' })
    service.clock.advance(HOUR)
    expect((await open(id)).status).toBe(303)
    service.clock.advance(DAY)
    expect((await open(id)).status).toBe(400)
  })

  it.each([
    ['of another client_id', { client_id: 'https://agents.example.test/other.json' }],
    ['without redirects', { redirect_uris: undefined }],
    ['with a redirect that cannot be', { redirect_uris: ['javascript:alert(1)'] }],
    ['that has a secret', { token_endpoint_auth_method: 'client_secret_basic' }],
  ])('(%s) is refused', async (title, changes) => {
    const id = publish(`/${title.length}.json`, changes)
    const answer = await open(id)
    expect([answer.status, answer.headers.get('location')]).toEqual([400, null])
  })

  it('is refused at once when its host answers with anything but a small document', async () => {
    const endless = async function* () {
      for (;;) yield 'x'.repeat(65_536)
    }
    const cases: Record<string, Parameters<DocumentSite['answers']['set']>[1]> = {
      '/gone': { status: 404, body: '{}' },
      '/moved': { status: 302, headers: { location: 'http://169.254.169.254/latest' }, body: '' },
      '/svg': { headers: { 'content-type': 'image/svg+xml' }, body: '<svg/>' },
      '/html': { headers: { 'content-type': 'text/html' }, body: '{}' },
      '/packed': { headers: { 'content-encoding': 'gzip' }, body: 'x' },
      '/broken': { body: '{' },
      '/large': { body: endless },
    }
    for (const [path, answer] of Object.entries(cases)) {
      site.answers.set(path, answer)
      const { status } = await open(`https://${site.host}${path}`)
      expect([path, status]).toEqual([path, 400])
    }
    expect(site.asked).toEqual(Object.keys(cases))
  })

  it('is refused when its host is too slow', { timeout: 30_000 }, async () => {
    const slowly = async function* () {
      for (;;) {
        yield ' '
        await new Promise((resolve) => void setTimeout(resolve, 200))
      }
    }
    site.answers.set('/slow', { body: slowly })
    expect((await open(`https://${site.host}/slow`)).status).toBe(400)
  })

  it.each([
    ['10.0.0.1'],
    ['127.0.0.1'],
    ['169.254.169.254'],
    ['100.64.0.1'],
    ['0.0.0.0'],
    ['::1'],
    ['fd00::1'],
    ['::ffff:a9fe:a9fe'],
    ['64:ff9b::a9fe:a9fe'],
    ['2002:7f00:1::'],
    ['93.184.216.34', '192.168.0.1'],
  ])('is not fetched from the address %s', async (...addresses) => {
    const looked: string[] = []
    goOut = createPublicFetch({
      dial: (target) =>
        dialPublic(target, async (name) => {
          looked.push(name)
          return addresses
        }),
    })
    const answer = await open(
      `https://private.example.test/${addresses.join('-').replace(/[^0-9a-z]/g, '-')}`,
    )
    expect(answer.status).toBe(400)
    expect(await answer.text()).not.toContain(addresses[0])
    // The connection goes to the address that was looked up; there is no second look-up.
    expect(looked).toEqual(['private.example.test'])
  })

  it.each([
    'http://agents.example.test/agent.json',
    'https://agents.example.test',
    'https://agents.example.test/',
    'https://agents.example.test:8443/agent.json',
    'https://user@agents.example.test/agent.json',
    'https://agents.example.test/agent.json#x',
    'https://agents.example.test/agent.json?x=1',
    'https://agents.example.test/a/../agent.json',
    'https://AGENTS.example.test/agent.json',
    'https://127.1/agent.json',
    `https://agents.example.test/${'x'.repeat(512)}`,
  ])('cannot have the id %s, for which nothing is fetched', async (id) => {
    publish('/agent.json')
    expect((await open(id)).status).toBe(400)
    expect(site.asked).toEqual([])
  })

  it('is fetched at most thirty times in a while for one address', async () => {
    const statuses: number[] = []
    for (let index = 0; index < 32; index++)
      statuses.push((await open(`https://${site.host}/none-${index}`)).status)
    expect(statuses.slice(0, 30)).toEqual(statuses.slice(0, 30).map(() => 400))
    expect(statuses.slice(30)).toEqual([429, 429])
    expect(site.asked).toHaveLength(30)
  })

  it('is accepted from the operator’s list of hosts only, also when it is cached', async () => {
    const named = await startService({
      loops: false,
      clientMetadata: true,
      clientHosts: ['claude.ai'],
      fetchPublic: site.fetchPublic,
    })
    try {
      const id = publish('/named.json')
      const path = authorizePath({ id, redirectUri: REDIRECT }, newPkce().challenge)
      const refused = await named.fetch('GET', path)
      expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining(site.host)])
      expect(site.asked).toEqual([])
      named.app.config.clientHosts.push(site.host)
      expect((await named.fetch('GET', path)).status).toBe(303)
      named.app.config.clientHosts.pop()
      expect((await named.fetch('GET', path)).status).toBe(400)
      expect(site.asked).toEqual(['/named.json'])
    } finally {
      await named.close()
    }
  })
})
