// A slip costs nothing: no single key and no single click ends something, and what is not there, fails or is typed wrong is
// said once, in a page that stays whole.

import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { accessibilityFaults } from '../support/axe.ts'
import { type DashboardFixture, startDashboard } from '../support/dashboard.ts'
import { makeTeam, makeUnit } from '../support/make.ts'
import { isDeep } from '../support/part-of.ts'

let dashboard: DashboardFixture

beforeAll(async () => {
  dashboard = await startDashboard()
}, 240_000)
afterAll(async () => await dashboard.close())

async function openUnit(spec: Record<string, unknown> = {}) {
  const { service } = dashboard
  const team = await makeTeam(service)
  const unit = await makeUnit(service, team, { name: 'web', ports: [8080], ...spec })
  const opened = await dashboard.open(team, '/t')
  await opened.page.waitForURL(/\/units$/)
  const base = opened.page.url().replace(/\/units$/, '')
  await opened.page.goto(`${base}/units/${unit.id}`)
  await opened.page.getByRole('heading', { name: 'web' }).waitFor()
  const list = async () =>
    (await service.call<{ units: Unit[] }>('GET', '/v1/units', { key: team.key })).body.units
  return { ...opened, team, unit, base, list }
}

/** Every letter and digit, one after the other. */
const singleKeys = [...'abcdefhijklmnopqrstuvwxyz0123456789'.split(''), 'g', 'Delete', 'Backspace']

it('no single key changes a unit or a stack, on the page of a unit, of a stack or in the list', async () => {
  const { page, context, faults, base, list, unit } = await openUnit()
  const calls: string[] = []
  page.on('request', (request) => {
    if (request.method() !== 'GET') calls.push(`${request.method()} ${request.url()}`)
  })
  const stack = unit.internalHost.split('.')[1]
  for (const path of [`units/${unit.id}`, 'units', `stacks/${stack}`]) {
    for (const key of singleKeys) {
      if (!page.url().endsWith(path)) await page.goto(`${base}/${path}`)
      await page.getByRole('heading', { level: 1 }).waitFor()
      await page.keyboard.press(key)
    }
  }
  expect(calls).toEqual([])
  expect((await list()).map(({ state }) => state)).toEqual(['running'])
  expect(faults).toEqual([])
  await context.close()
}, 180_000)

it('stopping asks first, from the button, the menu, the palette and for several units', async () => {
  const { page, context, faults, base, list, unit } = await openUnit()
  const dialog = page.getByRole('alertdialog')
  const isAsked = async () => {
    await dialog.getByText('do not wake it').waitFor()
    expect(await accessibilityFaults(page)).toEqual({})
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    expect((await list())[0]?.state).toBe('running')
  }
  await page.getByRole('button', { name: 'More actions' }).click()
  await page.getByRole('menuitem', { name: 'Stop…' }).click()
  await isAsked()
  await page.keyboard.press('Control+k')
  await page.getByRole('combobox', { name: /^Search units/ }).waitFor()
  await page.keyboard.type('stop')
  await page.keyboard.press('Enter')
  await isAsked()
  await page.goto(`${base}/units`)
  await page.getByRole('button', { name: 'Actions of web' }).click()
  await page.getByRole('menuitem', { name: 'Stop…' }).click()
  await isAsked()
  await page.getByRole('checkbox', { name: 'Select web' }).click()
  await page.getByRole('toolbar').getByRole('button', { name: 'Stop…' }).click()
  await isAsked()
  await page.goto(`${base}/units/${unit.id}`)
  await page.getByRole('button', { name: 'More actions' }).click()
  await page.getByRole('menuitem', { name: 'Stop…' }).click()
  await dialog.getByRole('button', { name: 'Stop it' }).click()
  await page.getByText('stopped', { exact: true }).waitFor()
  expect(faults).toEqual([])
  await context.close()
}, 120_000)

it('a new address asks first, since it ends the present one', async () => {
  const { page, context, base, list, unit } = await openUnit()
  await page.goto(`${base}/units/${unit.id}/egress`)
  await page.getByRole('button', { name: 'Publish', exact: true }).click()
  await page.getByRole('button', { name: 'New address…' }).click()
  const url = (await list())[0]?.endpoints[0]?.url
  await page.getByRole('alertdialog').getByRole('button', { name: 'Cancel' }).click()
  expect((await list())[0]?.endpoints[0]?.url).toBe(url)
  await page.getByRole('button', { name: 'New address…' }).click()
  await page.getByRole('alertdialog').getByRole('button', { name: 'New address' }).click()
  await expect.poll(async () => (await list())[0]?.endpoints[0]?.url).not.toBe(url)
  await context.close()
}, 120_000)

it('the palette stays closed over a question, and opens beside a message', async () => {
  const { page, context, faults } = await openUnit()
  await page.getByRole('link', { name: 'Settings' }).click()
  await page.getByRole('button', { name: 'Destroy…' }).click()
  const question = page.getByRole('alertdialog')
  await question.waitFor()
  const palette = page.getByRole('dialog', { name: 'Search and commands' })
  await page.keyboard.press('Control+k')
  // It would have come with the next key, which moves the focus in the question.
  await page.keyboard.press('Tab')
  expect(await palette.count()).toBe(0)
  await page.keyboard.press('Escape')
  await question.waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Fork' }).click()
  await page.getByText('is copied as').first().waitFor()
  await page.keyboard.press('Control+k')
  await palette.waitFor()
  expect(faults).toEqual([])
  await context.close()
}, 120_000)

it.skipIf(!isDeep)(
  'an address of nothing, and one of no team, keep the frame of the pages and violate no axe-core rule',
  async () => {
    const { page, context, faults, base, unit } = await openUnit()
    const origin = dashboard.service.baseUrl
    for (const address of [
      `${base}/nothing/here`,
      `${base}/units/unit_none`,
      `${base}/units/${unit.id}/nothing`,
      `${base}/stacks/none`,
      `${base}/recipes/none`,
      `${base}/agents/none`,
      `${origin}/t/no-such-team/units`,
    ]) {
      await page.goto(address)
      await page.getByRole('heading', { level: 1, name: /^There is no/ }).waitFor()
      expect({ address, wrong: await accessibilityFaults(page) }).toEqual({ address, wrong: {} })
      await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Units' }).waitFor()
    }
    expect(faults).toEqual([])
    await context.close()
  },
  180_000,
)

it.skipIf(!isDeep)(
  'a page has its heading while it is read, and where it cannot be read',
  async () => {
    const { page, context, base, unit } = await openUnit()
    for (const [path, call] of [
      [`units/${unit.id}`, '**/v1/units/unit_*'],
      ['stacks/default', '**/v1/stacks*'],
      ['recipes/postgres', '**/v1/recipes/*'],
      ['agents/none', '**/v1/agents'],
    ] as const) {
      const held = Promise.withResolvers<void>()
      await page.route(call, async (route) => {
        await held.promise
        await route.abort()
      })
      await page.goto(`${base}/${path}`)
      await page.getByText('Loading').first().waitFor({ state: 'attached' })
      await page.getByRole('heading', { level: 1 }).waitFor()
      expect({ path, wrong: await accessibilityFaults(page) }).toEqual({ path, wrong: {} })
      await page.getByText('Still loading: Berth is slow to answer.').first().waitFor()
      held.resolve()
      const alert = page.getByRole('alert')
      await alert.getByText('Berth cannot be reached').waitFor()
      expect({ path, wrong: await accessibilityFaults(page) }).toEqual({ path, wrong: {} })
      expect(await alert.innerText()).not.toContain('Failed to fetch')
      await alert.getByText('Check your network, then try again.', { exact: true }).waitFor()
      await page.unroute(call)
    }
    await context.close()
  },
  180_000,
)

it('a form that is not right yet shows no null in its code', async () => {
  const { page, context, base } = await openUnit()
  await page.goto(`${base}/units/new`)
  await page.getByLabel('Ports').fill('80, web, 99999')
  await page.getByText('Advanced', { exact: true }).click()
  await page.getByLabel('Volume in GB').fill('some')
  for (const each of ['curl', 'CLI', 'TypeScript', 'Python', 'MCP']) {
    await page.getByRole('radio', { name: each, exact: true }).check()
    const code = await page.getByRole('region', { name: `the call in ${each}` }).innerText()
    expect(code).toContain('80')
    expect(code).not.toMatch(/null|NaN|None/)
  }
  await page.getByRole('button', { name: 'Create' }).click()
  await page.getByText('Numbers up to 65535.').waitFor()
  await page.getByText('A number of GB.').waitFor()
  await context.close()
}, 120_000)

it('a line of egress rules that is no entry is refused as one, once', async () => {
  const { page, context, base, unit } = await openUnit({
    egress: { mode: 'listed', allow: ['a.example.com'] },
  })
  await page.goto(`${base}/units/${unit.id}/egress`)
  await page.getByRole('textbox', { name: 'Hosts' }).fill('a.example.com\nnot a host!')
  const sent = page.waitForRequest((request) => request.method() === 'PUT')
  await page.getByRole('button', { name: 'Set rules' }).click()
  expect((await sent).postDataJSON()).toMatchObject({ allow: ['a.example.com', 'not a host!'] })
  const said = page.getByText('not a host!')
  await page.getByText(/^“not a host!” /).waitFor()
  expect((await said.allTextContents()).filter((text) => text.startsWith('“')).length).toBe(1)
  expect(await page.getByRole('alert').count()).toBe(0)
  await context.close()
}, 120_000)
