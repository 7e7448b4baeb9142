// The dashboard in a browser: what a person sees of their units, and does with them.

import { afterAll, beforeAll, expect, it } from 'vitest'
import { type DashboardFixture, startDashboard } from '../support/dashboard.ts'
import { makeTeam } from '../support/make.ts'

let dashboard: DashboardFixture

beforeAll(async () => {
  dashboard = await startDashboard()
}, 240_000)
afterAll(async () => await dashboard.close())

it('the dashboard opens with a live list of units, from which a unit can be opened and used', async () => {
  const team = await makeTeam(dashboard.service)
  const { page, context, faults } = await dashboard.open(team)
  await page.waitForURL(/\/t\/[^/]+\/units$/)
  await page.getByText('live', { exact: true }).waitFor()
  const spec = { name: 'first', image: 'berth.local/debian:12' }
  const made = await dashboard.service.call('POST', '/v1/units', { key: team.key, body: { spec } })
  expect(made.status).toBe(201)
  await page.getByRole('row', { name: /first/ }).waitFor()
  await page.getByRole('row', { name: /first/ }).focus()
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'first' }).waitFor()
  await page.getByRole('textbox', { name: 'Command' }).fill('echo "<b>hello</b>"')
  await page.keyboard.press('Enter')
  await page.getByRole('region', { name: 'What it printed' }).getByText('<b>hello</b>').waitFor()
  expect(faults).toEqual([])
  await context.close()
}, 120_000)

it('the dashboard asks once who is signed in, with what its page preloads', async () => {
  const { service } = dashboard
  const team = await makeTeam(service)
  const { page, context } = await dashboard.open(team, '/t')
  await page.getByText('live', { exact: true }).waitFor()
  const { body } = await service.call<{ events: unknown[] }>('GET', '/v1/audit?action=me.read', {
    key: team.key,
  })
  expect(body.events).toHaveLength(1)
  await context.close()
}, 120_000)
