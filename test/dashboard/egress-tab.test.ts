// The page Egress of a unit: what it was refused comes by itself, one press allows it, and a bound is said.

import { afterAll, beforeAll, expect, it } from 'vitest'
import { watchEgress } from '../../src/domain/egress/keep-log.ts'
import { minuteOf, type SeenLine } from '../../src/lib/egress/seen.ts'
import { type DashboardFixture, startDashboard } from '../support/dashboard.ts'
import { makeSession, makeTeam, makeUnit } from '../support/make.ts'

let dashboard: DashboardFixture
const stopped = new AbortController()

beforeAll(async () => {
  dashboard = await startDashboard()
  void watchEgress(dashboard.service.app, stopped.signal)
}, 240_000)
afterAll(async () => {
  stopped.abort()
  await dashboard.close()
})

it('a refused name is listed as it happens, allowed by one press, and refused beyond a bound', async () => {
  const { service } = dashboard
  const team = await makeTeam(service)
  const egress = { mode: 'listed', allow: ['a.example.com'] }
  const unit = await makeUnit(service, team, { egress })
  const see = (host: string, more: Partial<SeenLine> = {}) =>
    service.engine.seeEgress([{ ...refused, minute: minuteOf(new Date()), host, ...more, machine: unit.id }])
  const { page, context, faults } = await dashboard.open(team, '/t')
  await page.waitForURL(/\/units$/)
  await page.goto(`${page.url()}/${unit.id}/egress`)
  await page.getByText('None yet.').waitFor()
  await page.getByText('Nothing yet.').waitFor()
  see('telemetry.example.com', { count: 3 })
  see('a.example.com', allowed)
  const names = page.getByRole('list', { name: 'Refused names' })
  await names.getByText('telemetry.example.com').waitFor()
  await page.getByRole('row', { name: /allowed a\.example\.com:443/ }).waitFor()

  await page.getByRole('button', { name: 'Allow telemetry.example.com' }).click()
  await names.waitFor({ state: 'detached' })
  expect(await page.getByRole('textbox', { name: 'Hosts' }).inputValue()).toBe(
    'a.example.com\ntelemetry.example.com',
  )

  const bound = { egress: { mode: 'listed', allow: ['*.example.com'] } }
  const by = { cookie: await makeSession(service, team), headers: { origin: service.baseUrl } }
  const changed = await service.call('PATCH', `/v1/keys/${team.keyId}`, { ...by, body: { policy: bound } })
  expect(changed.status).toBe(200)
  see('evil.example.net')
  await page.getByRole('button', { name: 'Allow evil.example.net' }).click()
  await page
    .getByRole('alert')
    .getByText(/evil\.example\.net/)
    .waitFor()
  expect(faults.filter((fault) => !fault.includes('402'))).toEqual([])
  await context.close()
}, 120_000)

const refused: SeenLine = {
  minute: 0,
  host: null,
  address: null,
  port: null,
  protocol: 'dns',
  decision: 'refused',
  reason: 'not_listed',
  rule: null,
  secret: null,
  bytesIn: 0,
  bytesOut: 0,
  count: 1,
}
const allowed: Partial<SeenLine> = {
  address: '203.0.113.7',
  port: 443,
  protocol: 'tls',
  decision: 'allowed',
  reason: 'listed',
  rule: 'a.example.com',
  bytesIn: 48_213,
  bytesOut: 911,
}
