// Every page of the dashboard, with the rules of axe-core, light and dark, on a desk and on a phone.

import { afterAll, beforeAll, expect, it } from 'vitest'
import { accessibilityFaults } from '../support/axe.ts'
import { type DashboardFixture, startDashboard } from '../support/dashboard.ts'
import { dashboardPages } from '../support/dashboard-pages.ts'
import { makeTeam, makeUnit } from '../support/make.ts'

let dashboard: DashboardFixture

beforeAll(async () => {
  dashboard = await startDashboard()
}, 240_000)
afterAll(async () => await dashboard.close())

it('no dashboard page violates the axe-core rules in light or dark mode, on a wide or narrow screen', async () => {
  const team = await makeTeam(dashboard.service)
  const { page, context } = await dashboard.open(team, '/t')
  const found: Record<string, Record<string, string[]>> = {}
  const look = async (name: string) => {
    const wrong = await accessibilityFaults(page)
    if (Object.keys(wrong).length > 0) found[name] = wrong
  }
  await page.getByRole('heading', { name: 'Start your first unit' }).waitFor()
  await look('first run')
  const unit = await makeUnit(dashboard.service, team, { name: 'web', ports: [8080] })
  const body = { spec: { name: 'db', image: 'node:22' }, stack: 'shop' }
  await dashboard.service.call('POST', '/v1/units', { key: team.key, body })
  const base = page.url().replace(/\/units$/, '')
  for (const [path, isRead] of Object.entries(dashboardPages(team, unit.id))) {
    await page.goto(`${base}/${path}`)
    await isRead(page)
    await look(path)
  }
  expect(found).toEqual({})
  await context.close()
}, 600_000)

it('the palette, the list of keys, and the pages without script violate no axe-core rule either', async () => {
  const { service } = dashboard
  const team = await makeTeam(service)
  await makeUnit(service, team, { name: 'web' })
  const { page, context } = await dashboard.open(team, '/t')
  const found: Record<string, Record<string, string[]>> = {}
  const look = async (name: string) => {
    const wrong = await accessibilityFaults(page)
    if (Object.keys(wrong).length > 0) found[name] = wrong
  }
  for (const [keys, name] of [
    ['Control+k', 'palette'],
    ['?', 'keys'],
  ] as const) {
    await page.getByRole('row', { name: /web/ }).waitFor()
    await page.keyboard.press(keys)
    await page.getByRole('dialog').waitFor()
    await look(name)
    await page.reload()
  }
  await service.app.db.updateTable('users').set({ admin: true }).where('id', '=', team.userId).execute()
  for (const path of ['account', 'invites/none', 'hosts']) {
    await page.goto(`${service.baseUrl}/${path}`)
    await look(path)
  }
  await context.clearCookies()
  await page.goto(`${service.baseUrl}/sign-in?ended`)
  await look('sign-in')
  expect(found).toEqual({})
  await context.close()
}, 300_000)
