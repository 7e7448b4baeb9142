// The documentation as it is served, with the rules of axe-core: a part of the pages of its navigation each day, and all in
// the deep tier.

import { afterAll, beforeAll, expect, it } from 'vitest'
import { accessibilityFaults } from '../support/axe.ts'
import { type DashboardFixture, startDashboard } from '../support/dashboard.ts'

let dashboard: DashboardFixture

beforeAll(async () => {
  dashboard = await startDashboard()
}, 240_000)
afterAll(async () => await dashboard.close())

it('no documentation page violates the axe-core rules in light or dark mode, on a wide or narrow screen', async () => {
  const { baseUrl } = dashboard.service
  const page = await dashboard.browser.newPage()
  await page.goto(`${baseUrl}/docs`)
  const links = await page.locator('nav a[href^="/docs"]').all()
  const listed = await Promise.all(links.map(async (link) => await link.getAttribute('href')))
  const paths = new Set(listed.flatMap((href) => href?.replace(/#.*/, '') ?? []))
  expect(paths.size).toBeGreaterThan(40)
  const found: Record<string, Record<string, string[]>> = {}
  for (const path of [...paths, '/docs/search?q=fork', '/docs/nowhere']) {
    await page.goto(baseUrl + path)
    const wrong = await accessibilityFaults(page)
    if (Object.keys(wrong).length > 0) found[path] = wrong
  }
  expect(found).toEqual({})
  await page.close()
}, 900_000)
