// S6: requests that pages of other sites make a browser send, with the cookie of the person who uses it, have no
// effect. Covers every route of the API and every page, so a new one is covered without being named.

import { request } from 'node:http'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { pages } from '../../src/api/web/pages.ts'
import { routes } from '../../src/api/routes.ts'
import { createSignInLink } from '../../src/domain/credentials/sign-in.ts'
import { makeSession, makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam
let cookie: string
let unitId: string

beforeAll(async () => {
  service = await startService({ loops: false })
  team = await makeTeam(service)
  unitId = (await makeUnit(service, team)).id
})
afterAll(async () => await service.close())
beforeEach(async () => {
  cookie = await makeSession(service, team)
})

/** How a browser states the origin of a request, which no page can change. */
const foreign = {
  'a form of another site': {
    origin: 'https://evil.test',
    'sec-fetch-site': 'cross-site',
    'sec-fetch-mode': 'navigate',
  },
  'a form of another site, in a browser that says no more': { origin: 'https://evil.test' },
  'a frame without an origin': { origin: 'null', 'sec-fetch-site': 'cross-site' },
  'a fetch of another site that reads nothing': { origin: 'https://evil.test', 'sec-fetch-mode': 'no-cors' },
  'a page that a unit serves on a sibling name': {
    origin: 'http://unit.berth.test',
    'sec-fetch-site': 'same-site',
  },
  'a page of this service by another scheme': { origin: 'https://berth.test' },
  'a page on another port of this host': { origin: 'http://127.0.0.1:1', 'sec-fetch-site': 'same-site' },
  'a client that sends no origin': {},
} satisfies Record<string, Record<string, string>>

const contents = [
  ['application/x-www-form-urlencoded', 'name=x&email=eve%40example.test'],
  ['text/plain', '{"name":"x","email":"eve@example.test"}'],
  ['application/json', '{"name":"x","email":"eve@example.test"}'],
] as const

/** All data that a call could have changed. */
async function everything(): Promise<unknown> {
  const { db } = service.app
  return [
    await db.selectFrom('users').selectAll().orderBy('id').execute(),
    await db.selectFrom('teams').selectAll().orderBy('id').execute(),
    await db.selectFrom('memberships').selectAll().execute(),
    await db.selectFrom('credentials').select(['id', 'name', 'revoked_at']).orderBy('id').execute(),
    await db.selectFrom('sessions').select(['id', 'revoked_at']).orderBy('id').execute(),
    await db.selectFrom('sign_in_links').select(['prefix', 'used_at']).orderBy('prefix').execute(),
    await db.selectFrom('provider_sign_ins').select('prefix').execute(),
    await db.selectFrom('oauth_requests').selectAll().orderBy('prefix').execute(),
    await db.selectFrom('oauth_codes').select('prefix').execute(),
    await db.selectFrom('mails').select('id').execute(),
    await db.selectFrom('stacks').select(['id', 'name']).orderBy('id').execute(),
    await db.selectFrom('units').selectAll().orderBy('id').execute(),
  ]
}

const pathOf = (path: string) => path.replace('{id}', unitId).replace(/\{\w+\}/g, 'x')
const unsafe = [
  // A WebSocket is refused by its own rule: test/api/terminal.test.ts.
  ...routes.filter(({ auth, kind, status }) => auth === 'caller' && kind === 'change' && status !== 101),
  ...pages.filter(({ method }) => method === 'POST'),
].map(({ method, path }) => [`${method} ${path}`, method, pathOf(path)] as const)

describe.each(unsafe)('%s', (_name, method, path) => {
  it('is refused from anywhere but our own pages, and changes nothing', async () => {
    const before = await everything()
    for (const [where, headers] of Object.entries(foreign)) {
      for (const [type, body] of contents) {
        const answer = await service.fetch(method, path, {
          cookie,
          ...(method === 'DELETE' ? {} : { body }),
          headers: { ...headers, 'content-type': type },
        })
        expect(answer.status, `${where}, ${type}`).toBe(403)
        expect(answer.headers.get('set-cookie')).toBeNull()
        expect(answer.headers.get('access-control-allow-origin')).toBeNull()
      }
    }
    expect(await everything()).toEqual(before)
  })
})

it('an origin counts as ours only if its scheme, host and port are those of this service', async () => {
  const { protocol, host, hostname, port } = new URL(service.baseUrl)
  const change = async (origin: string) =>
    (await service.call('PATCH', '/v1/me', { cookie, body: { name: 'Ada' }, headers: { origin } })).status
  const foreigners = [`https://${host}`, `${protocol}//${hostname}`, `${protocol}//${hostname}:1`]
    .concat([
      `${protocol}//localhost:${port}`,
      `${service.baseUrl}/`,
      `${service.baseUrl}, ${service.baseUrl}`,
    ])
    .concat([`${protocol}//me@${host}`, 'https://berth.test', 'http://berth.test:80', 'ws://berth.test'])
  for (const origin of foreigners) expect([origin, await change(origin)]).toEqual([origin, 403])
  for (const origin of [service.baseUrl, 'http://berth.test'])
    expect([origin, await change(origin)]).toEqual([origin, 200])
})

it('JSON with the media type of text is refused to our own pages too', async () => {
  const headers = { origin: service.baseUrl, 'content-type': 'text/plain' }
  const answer = await service.fetch('PATCH', '/v1/me', { cookie, body: '{"name":"x"}', headers })
  expect(answer.status).toBe(415)
})

const reads = [
  ...routes.filter(({ method, auth }) => method === 'GET' && auth === 'caller'),
  ...pages.filter(({ method }) => method === 'GET'),
].map(({ path }) => pathOf(path))

describe.each(reads)('GET %s', (path) => {
  it('changes nothing when another site sends a browser to it, and cannot be read from there', async () => {
    const before = await everything()
    for (const mode of ['navigate', 'no-cors', 'cors']) {
      const headers = { accept: 'text/html', 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': mode }
      const answer = await service.fetch('GET', path, { cookie, headers })
      expect(answer.headers.get('access-control-allow-origin')).toBeNull()
      if (path.startsWith('/v1/') && mode !== 'navigate') expect(answer.status).toBe(403)
      await answer.body?.cancel()
    }
    expect(await everything()).toEqual(before)
  })
})

it('another site cannot sign a person in, neither with a link of its own nor by opening one', async () => {
  const link = await createSignInLink(service.app, 'eve@example.test')
  const looked = await service.fetch('GET', `/sign-in?token=${link.token}`, {
    headers: { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' },
  })
  expect([looked.status, looked.headers.get('set-cookie')]).toEqual([200, null])
  for (const headers of Object.values(foreign)) {
    const used = await service.fetch('POST', '/sign-in', {
      body: `token=${link.token}`,
      headers: { ...headers, 'content-type': 'application/x-www-form-urlencoded' },
    })
    expect([used.status, used.headers.get('set-cookie')]).toEqual([403, null])
  }
})

it('another site opens no stream and no socket with the cookie of the person (reliability S21)', async () => {
  const stream = { cookie, headers: { accept: 'text/event-stream' } }
  const path = `/v1/units/${unitId}/logs?follow=true`
  for (const [what, headers] of Object.entries(foreign)) {
    // A browser states where a request of a page comes from; a program that does not has the cookie itself.
    if (Object.keys(headers).length === 0) continue
    const answer = await service.fetch('GET', path, { ...stream, headers: { ...stream.headers, ...headers } })
    expect([what, answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([
      what,
      403,
      null,
    ])
    await answer.body?.cancel()
  }
  for (const at of [path, '/mcp', '/v1/units']) {
    const status = await new Promise<number | string>((resolve, reject) => {
      const asked = request(service.baseUrl + at, {
        headers: {
          cookie,
          origin: 'https://evil.test',
          connection: 'upgrade',
          upgrade: 'websocket',
          'sec-websocket-version': '13',
          'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
        },
      })
      asked.once('response', (answer) => {
        asked.destroy()
        resolve(answer.statusCode ?? 0)
      })
      asked.once('upgrade', () => resolve('a socket'))
      asked.once('error', reject)
      asked.end()
    })
    expect([at, status]).toEqual([at, 403])
  }
})
