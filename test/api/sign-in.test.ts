// Design 7: one-time links, sessions, and what keeps other sites from using them.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createSignInLink } from '../../src/domain/credentials/sign-in.ts'
import { DAY } from '../../src/lib/clock.ts'
import { makeSession, makeTeam, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam

beforeAll(async () => {
  service = await startService()
  team = await makeTeam(service)
})
afterAll(async () => await service.close())

const form = { 'content-type': 'application/x-www-form-urlencoded' }
const ownOrigin = () => ({ origin: service.baseUrl })

const useLink = (token: string, headers: Record<string, string> = {}) =>
  service.fetch('POST', '/sign-in', {
    body: `token=${token}`,
    headers: { ...form, ...ownOrigin(), ...headers },
  })

const newLink = async () => (await createSignInLink(service.app, team.email)).token

describe('a sign-in link', () => {
  test('shows the account it signs in to, and is not used up by looking', async () => {
    const token = await newLink()
    for (let times = 0; times < 3; times++) {
      const page = await service.fetch('GET', `/sign-in?token=${token}`)
      expect(page.status).toBe(200)
      expect(await page.text()).toContain(team.email)
    }
    expect((await useLink(token)).status).toBe(303)
  })

  test('gives a session that scripts and other sites cannot use', async () => {
    const answer = await useLink(await newLink())
    expect(answer.headers.get('location')).toBe('/')
    const [cookie = '', ...attributes] = (answer.headers.get('set-cookie') ?? '').split('; ')
    expect(cookie).toMatch(/^berth_session=berth_session_/)
    expect(attributes).toEqual(expect.arrayContaining(['Path=/', 'HttpOnly', 'SameSite=Lax']))
    const page = await service.fetch('GET', '/account', { cookie })
    expect(await page.text()).toContain(team.email)
    expect((await service.call('GET', '/v1/units', { cookie })).status).toBe(200)
  })

  test('works once, also for concurrent attempts', async () => {
    const token = await newLink()
    const answers = await Promise.all(Array.from({ length: 10 }, () => useLink(token)))
    expect(answers.filter(({ status }) => status === 303)).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(9)
    expect((await service.fetch('GET', `/sign-in?token=${token}`)).status).toBe(401)
  })

  test('expires after a day', async () => {
    const token = await newLink()
    service.clock.advance(DAY)
    expect((await service.fetch('GET', `/sign-in?token=${token}`)).status).toBe(401)
    expect((await useLink(token)).status).toBe(401)
  })

  test.each(['', 'x', 'berth_signin_000000000000_' + 'a'.repeat(43), '%00', '<script>'])(
    '(%j) is refused when it is unknown',
    async (token) => {
      const page = await service.fetch('GET', `/sign-in?token=${encodeURIComponent(token)}`)
      expect(page.status).toBe(401)
      expect(await page.text()).not.toContain('<script>')
      expect((await useLink(token)).status).toBe(401)
    },
  )

  test('of an unknown address makes an account with its own team', async () => {
    const { token } = await createSignInLink(service.app, 'newcomer@example.test')
    const cookie = ((await useLink(token)).headers.get('set-cookie') ?? '').split(';')[0] ?? ''
    expect((await service.call('GET', '/v1/units', { cookie })).body).toMatchObject({ units: [] })
  })

  test('finds the account of an address in any case', async () => {
    const { token } = await createSignInLink(service.app, team.email.toUpperCase())
    expect((await useLink(token)).status).toBe(303)
    const people = await service.app.db.selectFrom('users').select('email').execute()
    const same = people.filter(({ email }) => email.toLowerCase() === team.email)
    expect(same).toHaveLength(1)
  })

  test('cannot be used from a page of another site', async () => {
    for (const headers of [
      { origin: 'https://evil.test' },
      { origin: 'null' },
      { 'sec-fetch-site': 'cross-site' },
    ]) {
      const token = await newLink()
      expect((await useLink(token, headers)).status).toBe(403)
      expect((await useLink(token)).status).toBe(303)
    }
  })
})

describe('a session', () => {
  test.each([
    ['another site', { origin: 'https://evil.test' }],
    ['a page without an origin', { origin: 'null' }],
    ['another port of this host', { origin: 'http://127.0.0.1:1' }],
    ['no page at all', {}],
  ])('cannot create a unit from %s', async (_title, headers) => {
    const cookie = await makeSession(service, team)
    const body = { spec: { name: 'csrf', image: 'node:22' } }
    const answer = await service.call('POST', '/v1/units', { cookie, body, headers })
    expect(answer).toMatchObject({ status: 403, body: { error: { code: 'forbidden' } } })
    const list = await service.call('GET', '/v1/units?stack=csrf&all=true', { key: team.key })
    expect(list.status).toBe(404)
  })

  test('cannot be used to read from another site', async () => {
    const cookie = await makeSession(service, team)
    const answer = await service.call('GET', '/v1/units', {
      cookie,
      headers: { origin: 'https://evil.test' },
    })
    expect(answer.status).toBe(403)
    expect(answer.headers.get('access-control-allow-origin')).toBeNull()
  })

  test('can create units from our own pages', async () => {
    const cookie = await makeSession(service, team)
    const body = { spec: { name: 'from-pages', image: 'node:22' } }
    const answer = await service.call('POST', '/v1/units', { cookie, body, headers: ownOrigin() })
    expect(answer.status).toBe(201)
  })

  test('ends when its owner signs out', async () => {
    const cookie = await makeSession(service, team)
    const refused = await service.fetch('POST', '/sign-out', {
      cookie,
      headers: { origin: 'https://evil.test' },
    })
    expect(refused.status).toBe(403)
    expect((await service.call('GET', '/v1/units', { cookie })).status).toBe(200)
    const left = await service.fetch('POST', '/sign-out', { cookie, headers: ownOrigin() })
    expect(left.headers.get('set-cookie')).toContain('Max-Age=0')
    expect((await service.call('GET', '/v1/units', { cookie })).status).toBe(401)
  })

  test('ends after thirty days', async () => {
    const cookie = await makeSession(service, team)
    service.clock.advance(30 * DAY)
    expect((await service.call('GET', '/v1/units', { cookie })).status).toBe(401)
    expect((await service.fetch('GET', '/account', { cookie })).status).toBe(401)
  })
})

test('the session cookie is bound to the host over HTTPS', async () => {
  const secure = await startService({ publicUrl: 'https://berth.example' })
  try {
    const { token } = await createSignInLink(secure.app, 'person@example.test')
    const answer = await secure.fetch('POST', '/sign-in', {
      body: `token=${token}`,
      headers: { ...form, origin: 'https://berth.example' },
    })
    const cookie = answer.headers.get('set-cookie') ?? ''
    expect(cookie).toMatch(/^__Host-berth_session=.*; Path=\/; HttpOnly; SameSite=Lax; Secure$/)
    expect(cookie).not.toContain('Domain')
    const value = cookie.split(';')[0] ?? ''
    expect((await secure.call('GET', '/v1/units', { cookie: value })).status).toBe(200)
    const lookalike = value.replace('__Host-', '')
    expect((await secure.call('GET', '/v1/units', { cookie: lookalike })).status).toBe(401)
  } finally {
    await secure.close()
  }
})

/** There where the dashboard is built. */
const ofFace = /^\/assets\/inter-[\w-]+\.woff2$/

test('pages run no script, load only our stylesheet and typeface, and cannot be framed', async () => {
  for (const path of ['/', `/sign-in?token=${await newLink()}`, '/account']) {
    const page = await service.fetch('GET', path, { headers: { accept: 'text/html' } })
    const policy = page.headers.get('content-security-policy') ?? ''
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).not.toContain('unsafe')
    expect(page.headers.get('x-content-type-options')).toBe('nosniff')
    expect(page.headers.get('cache-control')).toBe('no-store')
    // With no-referrer, browsers would send `Origin: null` with the form, and the form would be refused.
    expect(page.headers.get('referrer-policy')).toBe('strict-origin')
    const html = await page.text()
    expect(html).not.toMatch(/<script|<style|style=|\son\w+=|javascript:/i)
    expect(policy).toContain("style-src 'self'")
    const linked = [...html.matchAll(/<link [^>]*href="([^"]+)"/g)].map(([, href = '']) => href)
    const [sheet = '', ...more] = linked.filter((href) => !ofFace.test(href))
    expect([sheet, more]).toEqual([expect.stringMatching(/^\/pages\.css\?[0-9a-f]{12}$/), []])
    const styles = await service.fetch('GET', sheet)
    expect([styles.status, styles.headers.get('content-type')]).toEqual([200, 'text/css; charset=utf-8'])
    expect(styles.headers.get('cache-control')).toContain('immutable')
    const css = await styles.text()
    expect(css).not.toContain('@import')
    for (const [, address] of css.matchAll(/url\("?([^")]*)/g)) expect(address).toMatch(ofFace)
  }
})

test('GET / describes the server', async () => {
  const { body } = await service.call('GET', '/')
  expect(body).toMatchObject({ name: 'Berth', openapi: expect.stringContaining('/v1/openapi.json') })
})
