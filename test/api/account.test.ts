// The account page of a signed-in person: how to connect a client, which clients are connected, and a button that
// revokes one.

import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { makeSession, makeTeam, type TestTeam } from '../support/make.ts'
import { connect, registerClient, signedInBrowser } from '../support/oauth.ts'
import type { Browser } from '../support/browser.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam
let cookie: string
let browser: Browser

beforeAll(async () => {
  service = await startService({ loops: false })
})
afterAll(async () => await service.close())
beforeEach(async () => {
  team = await makeTeam(service)
  cookie = await makeSession(service, team)
  browser = signedInBrowser(service, cookie)
})

const accountPage = async () => await (await browser.get('/account')).text()
const works = async (key: string) => (await service.call('GET', '/v1/units', { key })).status === 200
const revokeForm = (html: string) => /action="(\/account\/agents\/[^"]+)"/.exec(html)?.[1]

it('the account page shows how to connect a client, with text to paste', async () => {
  const page = await accountPage()
  for (const pasted of [
    '<pre tabindex="0">http://berth.test/mcp</pre>',
    'claude mcp add --transport http berth http://berth.test/mcp',
    'codex mcp add berth --url http://berth.test/mcp',
    'code --add-mcp',
    'mcpServers',
  ])
    expect(page).toContain(pasted)
  expect(page).not.toContain('Programs you have connected')
  expect(page).not.toContain('<script')
})

it('the account page lists connected clients as plain text, with a button that revokes each', async () => {
  const client = await registerClient(service, { name: '<img src=x>\u202e' })
  const { tokens } = await connect(service, cookie, { client })
  const page = await accountPage()
  expect(page).toContain('Programs you have connected')
  expect(page).not.toContain('<img')
  const answer = await browser.post(revokeForm(page) ?? '')
  expect([answer.status, answer.headers.get('location')]).toEqual([303, '/account'])
  expect(await works(tokens.access_token)).toBe(false)
  expect(await accountPage()).not.toContain('Programs you have connected')
  const row = await service.app.db
    .selectFrom('audit')
    .select(['via', 'status'])
    .where('team_id', '=', team.teamId)
    .where('action', '=', 'agent.revoke')
    .execute()
  expect(row).toEqual([{ via: 'dashboard', status: 200 }])
})

it('the account page revokes nothing of another team, and nothing by a form of another site', async () => {
  const { tokens } = await connect(service, cookie)
  const path = revokeForm(await accountPage()) ?? ''
  const eve = signedInBrowser(service, await makeSession(service, await makeTeam(service)))
  expect((await eve.post(path)).status).toBe(403)
  const foreign = { origin: 'https://evil.test', 'content-type': 'application/x-www-form-urlencoded' }
  expect((await service.fetch('POST', path, { cookie, headers: foreign, body: 'x=1' })).status).toBe(403)
  expect((await service.fetch('POST', path, { headers: { origin: service.baseUrl } })).status).toBe(401)
  expect(await works(tokens.access_token)).toBe(true)
})
