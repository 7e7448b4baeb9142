// The ten things that people come for, with the keyboard alone, from an empty team to one that is empty again.

import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type DashboardFixture, startDashboard } from '../support/dashboard.ts'
import { makeTeam } from '../support/make.ts'

let dashboard: DashboardFixture

beforeAll(async () => {
  dashboard = await startDashboard()
}, 240_000)
afterAll(async () => await dashboard.close())

/** More than any page has between two of its controls. */
const MAX_TABS = 120

/** Tab leads to it from where the focus is. */
async function reach(page: Page, wanted: Locator, key = 'Tab'): Promise<void> {
  await wanted.waitFor()
  const isThere = async () =>
    await wanted.evaluate((one) => one === one.ownerDocument.activeElement).catch(() => false)
  for (let tabs = 0; !(await isThere()); tabs += 1) {
    if (tabs === MAX_TABS) expect.unreachable(`Tab does not lead to ${wanted.toString()}`)
    await page.keyboard.press(key)
  }
}

async function press(page: Page, wanted: Locator, key = 'Tab'): Promise<void> {
  await reach(page, wanted, key)
  await page.keyboard.press('Enter')
}

async function write(page: Page, field: Locator, text: string): Promise<void> {
  await reach(page, field)
  await page.keyboard.press('Control+a')
  await page.keyboard.type(text)
}

async function find(page: Page, text: string): Promise<void> {
  await page.keyboard.press('Control+k')
  await page.getByRole('combobox', { name: /^Search units/ }).waitFor()
  await page.keyboard.type(text)
  await page.getByRole('listbox', { name: 'Results' }).getByRole('option').first().waitFor()
  await page.keyboard.press('Enter')
}

it('a person does the ten main tasks with the keyboard alone', async () => {
  const team = await makeTeam(dashboard.service)
  const { page, context, faults } = await dashboard.open(team, '/t')
  const button = (name: string | RegExp) =>
    page.getByRole('button', typeof name === 'string' ? { name, exact: true } : { name })
  const tab = (name: string) =>
    page.getByRole('navigation', { name: 'This unit' }).getByRole('link', { name, exact: true })

  // 1 A first unit, and 2 a command in its terminal.
  await press(page, button(/^Open a shell/))
  await page.getByText(/^Connected\./).waitFor()
  await page.locator('.xterm-rows').getByText('$').last().waitFor()
  await page.keyboard.type('echo by-hand')
  await page.keyboard.press('Enter')
  await page.locator('.xterm-rows').getByText('by-hand', { exact: true }).waitFor()
  await page.keyboard.press('Control+F6')
  const [, id = ''] = /units\/(unit_\w+)/.exec(page.url()) ?? []

  // 3 Its log, and 4 a file in it.
  // Behind the terminal's own buttons is the terminal again.
  await press(page, tab('Logs'), 'Shift+Tab')
  await page.getByText(/Live|nothing more/).waitFor()
  await press(page, tab('Files'))
  await page
    .getByRole('link', { name: 'etc', exact: true })
    .or(page.getByText('This folder is empty'))
    .first()
    .waitFor()

  // 5 It sleeps and wakes.
  await press(page, tab('Overview'))
  await press(page, button('More actions'))
  await page.getByRole('menuitem', { name: 'Sleep now' }).waitFor()
  await page.keyboard.type('sl')
  await page.keyboard.press('Enter')
  await press(page, button('Wake'))
  await page.getByText('running', { exact: true }).first().waitFor()

  // 6 A copy, from the palette.
  await find(page, 'fork')
  await page.getByText('is copied as').first().waitFor()

  // 7 Another unit by the form.
  await page.keyboard.press('Control+F6')
  await page.keyboard.press('g')
  await page.keyboard.press('u')
  await page.waitForURL(/\/units$/)
  await press(page, page.getByRole('link', { name: 'New unit' }))
  await write(page, page.getByLabel('Name', { exact: true }), 'typed')
  await press(page, button('Create'))
  await page.waitForURL(/\/units\/unit_\w+$/)

  // 8 A key for an agent.
  await find(page, 'Agents')
  await press(page, page.getByRole('link', { name: 'New key' }))
  await write(page, page.getByLabel('Name', { exact: true }), 'ci')
  await press(page, button('Create key'))
  await press(page, page.getByRole('link', { name: 'I have saved it' }))

  // 9 A unit is found by its name.
  await find(page, 'typed')
  await page.waitForURL(/\/units\/unit_\w+$/)
  expect(page.url()).not.toContain(id)

  // 10 It is destroyed, once it is asked for.
  await press(page, tab('Settings'))
  await press(page, button('Destroy…'))
  const dialog = page.getByRole('alertdialog')
  await press(page, dialog.getByRole('button', { name: /^Destroy/ }))
  await dialog.waitFor({ state: 'detached' })
  await expect
    .poll(async () => {
      const { body } = await dashboard.service.call<{ units: { name: string }[] }>('GET', '/v1/units', {
        key: team.key,
      })
      return body.units.map(({ name }) => name)
    })
    .not.toContain('typed')
  expect(faults).toEqual([])
  await context.close()
}, 240_000)
