// S4: a reader of the whole database and log has no token that can be used.

import { afterAll, beforeAll, expect, it } from 'vitest'
import type { KeyCreated } from '../../src/contract/agent.ts'
import { createSignInLink } from '../../src/domain/credentials/sign-in.ts'
import { goToProvider, openBrowser } from '../support/browser.ts'
import { everythingKept, formsOf } from '../support/kept.ts'
import { makeSession, makeTeam } from '../support/make.ts'
import { type OpenIdProvider, startOpenIdProvider } from '../support/openid.ts'
import { countStatements } from '../support/statements.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let openId: OpenIdProvider

beforeAll(async () => {
  openId = await startOpenIdProvider('http://berth.test/sign-in/google')
  service = await startService({ signIn: { google: openId.client, github: null }, loops: false })
})
afterAll(async () => {
  await service.close()
  await openId.close()
})

it('no token of any kind is stored or logged in plain text, used or not', async () => {
  const team = await makeTeam(service)
  const cookie = await makeSession(service, team)
  const sent = {
    cookie,
    body: { name: 'a key' },
    headers: { origin: service.baseUrl, 'idempotency-key': 'x' },
  }
  const { body: made } = await service.call<KeyCreated>('POST', '/v1/keys', sent)
  await service.call('GET', '/v1/units', { key: made.secret })
  await service.call('GET', '/v1/units', { key: `${made.secret.slice(0, -1)}A` })

  const link = await createSignInLink(service.app, team.email)
  const used = await createSignInLink(service.app, team.email)
  const byLink = openBrowser(service)
  await byLink.post('/sign-in', { token: used.token })
  await byLink.post('/sign-in', { token: `${link.token.slice(0, -1)}A` })

  await openBrowser(service).post('/sign-in/link', { email: 'ann@example.test' })
  const withMail = await everythingKept(service)
  const [mail] = await service.mailTo('ann@example.test')
  const mailed = /token=(\S+)/.exec(mail?.text ?? '')?.[1] ?? ''

  openId.people.set('7', { email: 'seven@example.test', email_verified: true })
  const byProvider = openBrowser(service, '7')
  const back = await goToProvider(byProvider, 'google')
  const attempt = byProvider.cookie('berth_provider') ?? ''
  const underWay = await everythingKept(service)
  await byProvider.get(back)

  const tokens = {
    key: made.secret,
    session: cookie.split('=')[1] ?? '',
    link: link.token,
    'used link': used.token,
    'mailed link': mailed,
    'session by a link': byLink.cookie('berth_session') ?? '',
    'session by a provider': byProvider.cookie('berth_session') ?? '',
    'sign-in under way': attempt,
    'code of the provider': new URL(back).searchParams.get('code') ?? '',
    'secret of the provider': openId.client.clientSecret,
  }
  const kept = [withMail, underWay, await everythingKept(service)].join('\n')
  expect(kept).toContain(made.key.prefix)
  for (const [kind, token] of Object.entries(tokens)) {
    expect(token.length, kind).toBeGreaterThan(20)
    for (const form of formsOf(token)) expect(kept.includes(form), kind).toBe(false)
  }
})

it('a wrong secret with a known prefix causes as many database statements as with an unknown one', async () => {
  const team = await makeTeam(service)
  const session = (await makeSession(service, team)).split('=')[1] ?? ''
  const unknown = (token: string) => token.replace(/_[0-9a-f]{12}_/, '_000000000000_')
  const wrong = (token: string) => token.slice(0, -1) + (token.endsWith('A') ? 'B' : 'A')
  const sofar = countStatements()
  const statementsOf = async (call: { key?: string; cookie?: string }) => {
    const before = sofar()
    expect((await service.call('GET', '/v1/units', call)).status).toBe(401)
    return sofar() - before
  }
  expect(await statementsOf({ key: wrong(team.key) })).toBe(await statementsOf({ key: unknown(team.key) }))
  const byCookie = (token: string) => statementsOf({ cookie: `berth_session=${token}` })
  expect(await byCookie(wrong(session))).toBe(await byCookie(unknown(session)))
})
