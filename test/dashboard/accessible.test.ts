// Every page of the dashboard, with the rules of axe-core, light and dark, on a desk and on a phone.

import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { AxeResults } from 'axe-core'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type DashboardFixture, startDashboard } from '../support/dashboard.ts'
import { makeTeam, makeUnit, type TestTeam } from '../support/make.ts'

let dashboard: DashboardFixture
let axe: string

beforeAll(async () => {
  dashboard = await startDashboard()
  axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
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

async function faultsOf(page: Page): Promise<string[]> {
  const { violations } = (await page.evaluate('axe.run()')) as AxeResults
  const found = violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(' | ')}`,
  )
  const isWide = (await page.evaluate('document.documentElement.scrollWidth > innerWidth')) as boolean
  return isWide ? [...found, 'the page is wider than its screen'] : found
}

const widths = { wide: 1280, narrow: 390 } as const

it('no dashboard page violates the axe-core rules in light or dark mode, on a wide or narrow screen', async () => {
  const team = await makeTeam(dashboard.service)
  const { page, context } = await dashboard.open(team, '/t')
  const found: Record<string, string[]> = {}
  const look = async (name: string) => {
    await page.evaluate(axe)
    for (const [screen, width] of Object.entries(widths)) {
      await page.setViewportSize({ width, height: 800 })
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
        const wrong = await faultsOf(page)
        if (wrong.length > 0) found[`${name}, ${screen}, ${colorScheme}`] = wrong
      }
    }
    await page.setViewportSize({ width: widths.wide, height: 800 })
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
