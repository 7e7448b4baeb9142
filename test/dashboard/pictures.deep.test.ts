// Every view of the dashboard, empty, full and failing, on a desk and on a phone, light and dark: none breaks a rule of
// axe-core, is wider than its screen or says anything on the console. `npm test` looks at some of them, the deep tier at
// all. With BERTH_PICTURES, a directory, each is written there as a picture.

import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page, Route } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { harbour } from '../../src/api/web/harbour.ts'
import { stylesheet } from '../../src/api/web/html.ts'
import { accessibilityFaults } from '../support/axe.ts'
import { type DashboardFixture, startDashboard } from '../support/dashboard.ts'
import { dashboardPages } from '../support/dashboard-pages.ts'
import { makeFullTeam, makeLivedTeam } from '../support/lived-team.ts'
import { makeTeam, type TestTeam } from '../support/make.ts'

const directory = process.env.BERTH_PICTURES

let dashboard: DashboardFixture

beforeAll(async () => {
  dashboard = await startDashboard()
}, 240_000)
afterAll(async () => await dashboard.close())

const errorBody = (code: string, message: string) =>
  JSON.stringify({ error: { code, message, requestId: 'req_0123456789abcdef0123456789abcdef' } })

/** What becomes of the calls of a page, but for who is signed in. */
const failures = {
  offline: async (route) => await route.abort('internetdisconnected'),
  500: async (route) =>
    await route.fulfill({
      status: 500,
      contentType: 'application/json',
      body: errorBody('internal', 'Internal error.'),
    }),
  403: async (route) =>
    await route.fulfill({
      status: 403,
      contentType: 'application/json',
      body: errorBody('forbidden', 'The policy of this key does not allow this.'),
    }),
  slow: async () => {},
} as const satisfies Record<string, (route: Route) => Promise<void>>

/** Long enough for two attempts of a call, and for what waits before it says that it waits. */
const FAILED_MS = 4000

/** A page that follows events is never idle. */
const SETTLED_MS = 1500

type View = { state: string; path: string; open: (page: Page) => Promise<unknown> }

async function viewsOf(
  team: TestTeam,
  unit: string,
): Promise<{ all: View[]; empty: View[]; failing: View[] }> {
  const pages = Object.entries(dashboardPages(team, unit))
  const settled = async (page: Page) => {
    await expect.poll(() => page.locator('main [data-waiting]').count(), { timeout: 60_000 }).toBe(0)
    await page.waitForTimeout(SETTLED_MS)
  }
  return {
    all: pages.map(([path]) => ({ state: 'full', path, open: settled })),
    empty: pages
      .filter(([path]) => !path.includes(unit) && path !== 'stacks/shop' && path !== `agents/${team.keyId}`)
      .map(([path]) => ({ state: 'empty', path, open: settled })),
    failing: Object.entries(failures).flatMap(([state, fail]) =>
      pages.map(([path]) => ({
        state,
        path,
        open: async (page) => {
          await page.route(/\/v1\/(?!me$)/, fail)
          await page.reload()
          await page.waitForTimeout(FAILED_MS)
        },
      })),
    ),
  }
}

/** Looks at the views of one team, and answers what is wrong by view. */
async function look(team: TestTeam, views: readonly View[], unit = ''): Promise<Record<string, unknown>> {
  const found: Record<string, unknown> = {}
  const { page: first, context } = await dashboard.open(team, '/t')
  await first.waitForURL(/\/units$/)
  const base = first.url().replace(/\/units$/, '')
  await first.close()
  for (const { state, path, open } of views) {
    const name = `${state} ${path.replace(unit, 'unit').replace(team.keyId, 'agent').replaceAll('/', '-')}`
    const page = await context.newPage()
    const said: string[] = []
    page.on('console', (message) => {
      if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
        said.push(message.text())
    })
    page.on('pageerror', (error) => said.push(error.message))
    await page.goto(`${base}/${path}`)
    await page.getByRole('main').waitFor()
    await open(page)
    const wrong = await accessibilityFaults(page, async (how) => await keep(page, `${name} ${how}`))
    if (said.length > 0 || Object.keys(wrong).length > 0) found[name] = { said, ...wrong }
    await page.close()
  }
  await context.close()
  return found
}

async function keep(page: Page, name: string): Promise<void> {
  if (directory === undefined) return
  await mkdir(directory, { recursive: true })
  await writeFile(join(directory, `${name.replaceAll(/[ ,]+/g, '_')}.png`), await page.screenshot())
}

it('every view of an empty team is right on both screens, in both themes', async () => {
  const team = await makeTeam(dashboard.service)
  const { empty } = await viewsOf(team, '-')
  expect(await look(team, empty)).toEqual({})
}, 900_000)

it('every view of a team with 2,000 units, the longest names and text from right to left is right', async () => {
  const team = await makeFullTeam(dashboard.service)
  const { all } = await viewsOf(team, team.unit.id)
  expect(await look(team, all, team.unit.id)).toEqual({})
}, 1_800_000)

it('every view whose calls fail, are refused or take long says so and breaks no rule', async () => {
  const team = await makeLivedTeam(dashboard.service)
  const { failing } = await viewsOf(team, team.unit.id)
  expect(await look(team, failing, team.unit.id)).toEqual({})
}, 3_600_000)

/** The pictures of the README and the one that other sites show: `npm run pictures` draws them again. */
it('the README shows the page of a unit in both themes, and other sites a picture of the harbour', async () => {
  const team = await makeLivedTeam(dashboard.service)
  const drawn: Record<string, Buffer> = {}
  for (const theme of ['light', 'dark'] as const) {
    const { page, context, faults } = await dashboard.open(team, '/t', { theme })
    await page.waitForURL(/\/units$/)
    await page.goto(`${page.url()}/${team.unit.id}`)
    await page.getByRole('slider', { name: 'Processor over time' }).waitFor()
    await page.getByText('nginx -t').first().waitFor()
    drawn[`docs/images/dashboard-${theme}.png`] = await page.screenshot()
    expect(faults).toEqual([])
    await context.close()
  }
  const page = await dashboard.browser.newPage({ viewport: { width: 1200, height: 630 } })
  await page.setContent(socialPage)
  drawn['src/api/web/social.png'] = await page.screenshot()
  await page.close()
  for (const [path, bytes] of Object.entries(drawn)) {
    const file = new URL(`../../${path}`, import.meta.url)
    if (process.env.BERTH_DRAW === 'yes') await writeFile(file, bytes)
    // Of the size that is kept: what it shows is looked at by people.
    expect(sizeOf(await readFile(file))).toEqual(sizeOf(bytes))
  }
}, 240_000)

const sizeOf = (png: Buffer) => [png.readUInt32BE(16), png.readUInt32BE(20)]

const socialPage = `<style>${stylesheet}
body { display: grid; place-content: center; justify-items: center; gap: 40px; height: 630px; max-width: none; margin: 0; padding: 0 }
.harbour { width: 640px; max-width: none; margin: 0 }
h1 { margin: 0; font-size: 72px; line-height: 1; letter-spacing: -0.02em }
p { margin: 0; font-size: 32px; line-height: 1.2 }
</style>${harbour}<h1>Berth</h1><p>Container units for AI agents, on your own machines</p>`
