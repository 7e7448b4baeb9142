// What the server puts into the page is what the dashboard draws afterwards: the same words in the same places, so that
// nothing moves when it takes over. It needs no other file to be painted, and its links work before there is a script.

import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type DashboardFixture, screens, type Screen, startDashboard } from '../support/dashboard.ts'
import { makeSession, makeTeam, makeUnit, type TestTeam } from '../support/make.ts'

// A browser takes a while on a busy machine.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 240_000 })

let dashboard: DashboardFixture
let team: TestTeam
let path: string

beforeAll(async () => {
  dashboard = await startDashboard()
  team = await makeTeam(dashboard.service)
  path = `/t/${team.teamId.replace('_', '-')}/units`
  for (const name of ['web', `name-${'x'.repeat(27)}`]) await makeUnit(dashboard.service, team, { name })
  const { id } = await makeUnit(dashboard.service, team, { name: 'stopped', sleep: 'never' })
  await dashboard.service.call('POST', `/v1/units/${id}/stop`, { key: team.key })
  const broken = await makeUnit(dashboard.service, team, { name: 'broken' })
  const row = { state: 'error' as const, error: 'The image could not be had.' }
  await dashboard.service.app.db.updateTable('units').set(row).where('id', '=', broken.id).execute()
})
afterAll(async () => await dashboard.close())

async function contextFor(
  screen: Screen,
  { who = team, ...options }: { javaScriptEnabled?: boolean; who?: TestTeam } = {},
) {
  const context = await dashboard.browser.newContext({ viewport: screens[screen], ...options })
  const [name = '', value = ''] = (await makeSession(dashboard.service, who)).split('=')
  await context.addCookies([{ name, value, url: dashboard.service.baseUrl }])
  return context
}

/** Only the page itself is answered; what is asked for beside it waits until `go`. */
async function holdFiles(context: BrowserContext): Promise<{ go: () => void }> {
  const { promise, resolve } = Promise.withResolvers<void>()
  await context.route(/\/assets\//, async (route) => {
    await promise
    await route.continue()
  })
  return { go: resolve }
}

const parts =
  'nav a, nav button, nav p, h1, header a, header div:not(:has(a)), input[type=search], select, [role=group] button, [role=columnheader], [role=cell], [role=cell] > a, h2, h3, main svg:not([role=img]), main li'

/** Words and places of what is on the page, in its order. What comes later, or changes by itself, is left out. */
const placesOf = async (page: Page) =>
  (await page.evaluate(`
    document.fonts.ready.then(() => [...document.querySelectorAll(${JSON.stringify(parts)})].map((part) => {
      const { x, y, width, height } = part.getBoundingClientRect()
      const words = part.querySelector('svg[role=img]') || part.closest('header') ? '' : part.textContent.trim()
      const still = words.replace(/(< |less than |just below |−)?€[0-9.]+/g, '€').replace(/(in )?[0-9]+ (s|min|h|days)\\b( ago)?|\\bnow$/g, 'then')
      return [part.tagName, still.slice(0, 60), ...[x, y, width, height].map(Math.round)].join(' ')
    }))`)) as string[]

describe.each(['wide', 'narrow'] as const)('the first view, %s', (screen) => {
  it('of an empty team has the words and the places of its first steps', async () => {
    const who = await makeTeam(dashboard.service)
    const still = await contextFor(screen, { javaScriptEnabled: false, who })
    const before = await still.newPage()
    await before.goto(`${dashboard.service.baseUrl}/t`)
    const drawn = await placesOf(before)
    await still.close()

    const live = await contextFor(screen, { who })
    const after = await live.newPage()
    await after.goto(`${dashboard.service.baseUrl}/t`)
    await after.getByText('live', { exact: true }).waitFor()
    const real = await placesOf(after)
    await live.close()
    expect(drawn.length).toBeGreaterThan(20)
    // Behind it is the code, which comes with the dashboard.
    expect(drawn).toEqual(real.slice(0, drawn.length))
  })

  it('has the words and the places of what the dashboard draws', async () => {
    const still = await contextFor(screen, { javaScriptEnabled: false })
    const before = await still.newPage()
    await before.goto(dashboard.service.baseUrl + path)
    await before.getByText('stopped').first().waitFor()
    // A page without scripts can be asked all the same.
    const drawn = await placesOf(before)
    await still.close()

    const live = await contextFor(screen)
    const after = await live.newPage()
    await after.goto(dashboard.service.baseUrl + path)
    await after.getByText('live', { exact: true }).waitFor()
    const real = await placesOf(after)
    await live.close()
    expect(drawn.length).toBeGreaterThan(60)
    expect(drawn).toEqual(real)
  })
})

it('is painted without any other file, and the dashboard takes over without a jump', async () => {
  const context = await contextFor('wide')
  const { go } = await holdFiles(context)
  const page = await context.newPage()
  await page.addInitScript(`
    globalThis.jumped = 0
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) globalThis.jumped += entry.value
    }).observe({ type: 'layout-shift', buffered: true })`)
  await page.goto(dashboard.service.baseUrl + path, { waitUntil: 'commit' })
  const link = page.getByRole('link', { name: 'web', exact: true })
  await link.waitFor()
  expect(await page.locator('#root').isVisible()).toBe(false)
  await link.focus()
  go()
  await page.getByText('live', { exact: true }).waitFor()
  expect(await page.locator('#first').count()).toBe(0)
  expect(await page.evaluate('document.activeElement.textContent')).toBe('web')
  expect(await page.evaluate('globalThis.jumped')).toBeLessThan(0.005)
  await context.close()
})

it('leads to the page of a unit before there is a script', async () => {
  const context = await contextFor('wide')
  const { go } = await holdFiles(context)
  const page = await context.newPage()
  await page.goto(dashboard.service.baseUrl + path, { waitUntil: 'commit' })
  await page.getByRole('link', { name: 'web', exact: true }).click({ noWaitAfter: true })
  go()
  await page.getByRole('heading', { name: 'web' }).waitFor()
  await context.close()
})

it('shows nothing of a team where this browser goes on in another one', async () => {
  const context = await contextFor('wide')
  const { go } = await holdFiles(context)
  await context.addInitScript(`localStorage.setItem('berth-place', '${path.replace('units', 'spend')}')`)
  const page = await context.newPage()
  await page.goto(`${dashboard.service.baseUrl}/t`, { waitUntil: 'commit' })
  await page.locator('#first').waitFor({ state: 'attached' })
  expect(await page.locator('#first').isVisible()).toBe(false)
  go()
  await page.getByRole('heading', { name: 'Spend', level: 1 }).waitFor()
  await context.close()
})
