// The dashboard without a mouse: what a person can do anything with is reached, and shows that it has the focus. `npm test`
// walks some of the pages, others each day, and the deep tier all of them.

import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type DashboardFixture, startDashboard, screens } from '../support/dashboard.ts'
import { dashboardPages } from '../support/dashboard-pages.ts'
import { keyboardFaults } from '../support/keyboard.ts'
import { makeTeam, makeUnit } from '../support/make.ts'
import { partOf } from '../support/part-of.ts'

let dashboard: DashboardFixture

beforeAll(async () => {
  dashboard = await startDashboard()
}, 240_000)
afterAll(async () => await dashboard.close())

it('on a wide and on a narrow screen every control is reached by Tab, shows its focus and lets go of it', async () => {
  const { service } = dashboard
  const team = await makeTeam(service)
  const unit = await makeUnit(service, team, { name: 'web', ports: [8080] })
  const body = { spec: { name: 'db', image: 'node:22' }, stack: 'shop' }
  await service.call('POST', '/v1/units', { key: team.key, body })
  const { page, context } = await dashboard.open(team, '/t')
  await page.waitForURL(/\/units$/)
  const base = page.url().replace(/\/units$/, '')
  const pages = Object.entries(dashboardPages(team, unit.id)).map(([path, isRead]) => ({
    url: `${base}/${path}`,
    isRead,
  }))
  const others = ['account', 'invites/none', 'sign-in?ended', 'docs'].map((path) => ({
    url: `${service.baseUrl}/${path}`,
    isRead: async () => {},
  }))
  const found: Record<string, string[]> = {}
  for (const { url, isRead } of partOf([...pages, ...others], 8)) {
    await page.goto(url)
    await isRead(page)
    for (const [screen, size] of Object.entries(screens)) {
      await page.setViewportSize(size)
      const faults = await keyboardFaults(page)
      if (faults.length > 0) found[`${url}, ${screen}`] = faults
    }
  }
  expect(found).toEqual({})
  await context.close()
}, 900_000)

it('dialogs and menus open by a key, keep the focus, close by Escape and give it back', async () => {
  const { service } = dashboard
  const team = await makeTeam(service)
  const unit = await makeUnit(service, team, { name: 'web' })
  const { page, context } = await dashboard.open(team, '/t')
  const row = page.getByRole('row', { name: /web/ })
  await row.focus()
  for (const [key, role] of [
    ['Control+k', 'dialog'],
    ['?', 'dialog'],
  ] as const)
    await opensAndCloses(page, row, key, page.getByRole(role))
  const actions = page.getByRole('button', { name: 'Actions of web' })
  await actions.focus()
  await opensAndCloses(page, actions, 'Enter', page.getByRole('menu'))
  const teams = page.getByRole('button', { name: /^Team/ })
  await teams.focus()
  await opensAndCloses(page, teams, 'Enter', page.getByRole('menu'))
  await page.goto(`${page.url()}/${unit.id}/settings`)
  const destroy = page.getByRole('button', { name: 'Destroy…' })
  await destroy.focus()
  await opensAndCloses(page, destroy, 'Enter', page.getByRole('alertdialog'))
  await context.close()
}, 120_000)

async function opensAndCloses(page: Page, from: Locator, key: string, popup: Locator): Promise<void> {
  await page.keyboard.press(key)
  await popup.waitFor()
  const focus = page.locator(':focus')
  const isInside = async () => (await popup.locator(focus).or(popup.and(focus)).count()) === 1
  for (let tabs = 0; tabs < 4; tabs += 1) {
    await expect.poll(isInside).toBe(true)
    await page.keyboard.press('ArrowDown')
    if ((await popup.getAttribute('role')) !== 'menu') await page.keyboard.press('Tab')
  }
  await page.keyboard.press('Escape')
  await popup.waitFor({ state: 'detached' })
  await expect.poll(async () => await from.and(focus).count()).toBe(1)
}
