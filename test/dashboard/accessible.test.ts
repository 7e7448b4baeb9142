// Every page of the dashboard, with the rules of axe-core, light and dark, on a desk and on a phone.

import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { accessibilityFaults } from '../support/axe.ts'
import { type DashboardFixture, startDashboard } from '../support/dashboard.ts'
import { makeTeam, makeUnit, type TestTeam } from '../support/make.ts'

let dashboard: DashboardFixture

beforeAll(async () => {
  dashboard = await startDashboard()
}, 240_000)
afterAll(async () => await dashboard.close())

/** What is on a page once it is read: by its path below the team's address. */
function pagesOf(team: TestTeam, unit: string): Record<string, (page: Page) => Promise<unknown>> {
  const heading = (name: string | RegExp) => async (page: Page) =>
    await page.getByRole('heading', { name }).first().waitFor()
  const text = (words: string | RegExp) => async (page: Page) => await page.getByText(words).first().waitFor()
  return {
    units: async (page) => await page.getByRole('row', { name: /web/ }).waitFor(),
    'units/new': heading('It costs'),
    [`units/${unit}`]: heading('About it'),
    [`units/${unit}/terminal`]: text('Connected.'),
    [`units/${unit}/logs`]: text(/Live|nothing more/),
    [`units/${unit}/metrics`]: heading('Memory'),
    [`units/${unit}/egress`]: heading('What it was refused'),
    [`units/${unit}/files`]: async (page) => await page.getByRole('link', { name: 'etc' }).waitFor(),
    [`units/${unit}/forks`]: text('Nothing is copied'),
    [`units/${unit}/activity`]: text('unit.create'),
    [`units/${unit}/settings`]: heading('Destroy it'),
    stacks: text('shop'),
    'stacks/shop': heading('Its units'),
    recipes: text('PostgreSQL'),
    'recipes/postgres': heading('It makes'),
    agents: text('test key'),
    [`agents/${team.keyId}`]: heading('What it did'),
    'agents/new': heading('What it may do'),
    spend: heading('Spend'),
    audit: text('unit.create'),
    team: heading(/.*/),
    credits: heading(/.*/),
    account: heading(/.*/),
    help: heading(/.*/),
  }
}

it('no dashboard page violates the axe-core rules in light or dark mode, on a wide or narrow screen', async () => {
  const team = await makeTeam(dashboard.service)
  const { page, context } = await dashboard.open(team, '/t')
  const found: Record<string, Record<string, string[]>> = {}
  const look = async (name: string) => {
    const wrong = await accessibilityFaults(page)
    if (Object.keys(wrong).length > 0) found[name] = wrong
  }
  await page.getByRole('heading', { name: 'Your first unit' }).waitFor()
  await look('first run')
  const unit = await makeUnit(dashboard.service, team, { name: 'web', ports: [8080] })
  const body = { spec: { name: 'db', image: 'node:22' }, stack: 'shop' }
  await dashboard.service.call('POST', '/v1/units', { key: team.key, body })
  const base = page.url().replace(/\/units$/, '')
  for (const [path, isRead] of Object.entries(pagesOf(team, unit.id))) {
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
  for (const path of ['account', 'invites/none']) {
    await page.goto(`${service.baseUrl}/${path}`)
    await look(path)
  }
  await context.clearCookies()
  await page.goto(`${service.baseUrl}/sign-in?ended`)
  await look('sign-in')
  expect(found).toEqual({})
  await context.close()
}, 300_000)
