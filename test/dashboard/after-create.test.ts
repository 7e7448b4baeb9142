// What a person sees of what they have just made: its own page, live, with passwords beside it that are told once.

import { afterAll, beforeAll, expect, it } from 'vitest'
import { accessibilityFaults } from '../support/axe.ts'
import { type DashboardFixture, startDashboard } from '../support/dashboard.ts'
import { makeTeam, makeUnit } from '../support/make.ts'

let dashboard: DashboardFixture

beforeAll(async () => {
  dashboard = await startDashboard()
}, 240_000)
afterAll(async () => await dashboard.close())

async function openTeam(path: string) {
  const team = await makeTeam(dashboard.service)
  const opened = await dashboard.open(team, '/t')
  await opened.page.getByText('live', { exact: true }).waitFor()
  const base = opened.page.url().replace(/\/units$/, '')
  await opened.page.goto(`${base}/${path}`)
  return { ...opened, base }
}

const once = /shown (this )?once/i

it('a published unit made by the form is shown on its own page, live, and its URL is no secret', async () => {
  const { page, context, faults } = await openTeam('units/new')
  await page.getByLabel('Ports').fill('8080')
  await page.getByLabel('Publish it').selectOption('for everybody')
  const goOn = dashboard.service.engine.hang('start')
  await page.getByRole('button', { name: 'Create' }).click()
  await page.waitForURL(/\/units\/unit_\w+$/)
  await page.getByText('creating', { exact: true }).waitFor()
  goOn()
  await page.getByText('running', { exact: true }).waitFor()
  await page.getByRole('link', { name: 'Open' }).waitFor()
  expect(await page.getByText(once).count()).toBe(0)
  await page.getByRole('link', { name: 'Stacks' }).click()
  await page.waitForURL(/\/stacks$/)
  expect(faults).toEqual([])
  await context.close()
}, 120_000)

it('a recipe without a password leads to its unit, and one of two units to their stack', async () => {
  const { page, context, faults, base } = await openTeam('recipes/static')
  const addFile = async (path: string) => {
    await page.getByRole('button', { name: 'Add a file' }).click()
    await page.getByLabel('Path 1').fill(path)
    await page.getByLabel('Text of the file 1').fill('hello')
  }
  await addFile('index.html')
  await page.getByLabel('Publish it').selectOption('for everybody')
  await page.getByRole('button', { name: 'Create' }).click()
  await page.waitForURL(/\/units\/unit_\w+$/)
  await page.getByRole('link', { name: 'Open' }).waitFor()
  expect(await page.getByText(once).count()).toBe(0)
  await page.goto(`${base}/recipes/etcd`)
  await page.getByRole('button', { name: 'Create' }).click()
  await page.waitForURL(/\/units\/unit_\w+$/)
  expect(await page.getByText(once).count()).toBe(0)
  await page.goto(`${base}/recipes/web-with-postgres`)
  await addFile('server.js')
  await page.getByRole('button', { name: 'Create' }).click()
  await page.waitForURL(/\/stacks\/[\w-]+$/)
  await page.getByText(once).waitFor()
  await page.getByRole('table', { name: 'Units of the stack' }).getByRole('link').first().click()
  await page.waitForURL(/\/units\/unit_\w+$/)
  expect(faults).toEqual([])
  await context.close()
}, 120_000)

it('a coding agent is made with a key that the person pastes, and opens in its terminal', async () => {
  const { page, context, faults } = await openTeam('recipes')
  await page.getByRole('link', { name: 'Claude Code' }).click()
  const value = page.getByLabel('Value of key')
  await value.waitFor()
  await page.getByRole('button', { name: 'Create' }).click()
  await page.getByText('Paste the value.').waitFor()
  await value.fill('sk-ant-of-a-person')
  expect(await page.getByRole('complementary', { name: 'Creates' }).textContent()).not.toContain(
    'sk-ant-of-a-person',
  )
  expect(await accessibilityFaults(page)).toEqual({})
  const asked = page.waitForRequest(
    (request) => request.method() === 'POST' && /v1.units$/.test(request.url()),
  )
  await page.getByRole('button', { name: 'Create' }).click()
  expect((await asked).postDataJSON()).toMatchObject({ params: { key: { value: 'sk-ant-of-a-person' } } })
  await page.waitForURL(/\/units\/unit_\w+\/terminal$/)
  expect(faults).toEqual([])
  await context.close()
}, 120_000)

it('three clicks make a coding agent with the key of the team', async () => {
  const team = await makeTeam(dashboard.service)
  const secret = { value: 'sk-of-the-team', hosts: ['api.openai.com'] }
  const put = await dashboard.service.call('PUT', '/v1/secrets/OPENAI_API_KEY', {
    key: team.key,
    body: secret,
  })
  expect(put.status).toBeLessThan(300)
  const { page, context, faults } = await dashboard.open(team, '/t')
  await page.getByRole('link', { name: 'Recipes' }).click()
  await page.getByRole('link', { name: 'Codex', exact: true }).click()
  await page.getByRole('button', { name: 'Create' }).click()
  await page.waitForURL(/\/units\/unit_\w+\/terminal$/)
  expect(faults).toEqual([])
  await context.close()
}, 120_000)

it('the page of a unit shows its generated passwords until the person has kept them, and can be left', async () => {
  const { page, context, faults } = await openTeam('recipes/postgres')
  await page.getByRole('button', { name: 'Create' }).click()
  await page.waitForURL(/\/units\/unit_\w+$/)
  const card = page.getByRole('region', { name: 'Passwords, shown once' })
  await card.getByText('POSTGRES_PASSWORD').waitFor()
  const shown = await card.getByRole('definition').allTextContents()
  expect(await accessibilityFaults(page)).toEqual({})
  await page.getByRole('link', { name: 'Units', exact: true }).click()
  await page.getByRole('row', { name: /postgres/ }).waitFor()
  await page.goBack()
  expect(await card.getByRole('definition').allTextContents()).toEqual(shown)
  await card.getByRole('button', { name: 'I have saved them' }).click()
  await card.waitFor({ state: 'detached' })
  expect(faults).toEqual([])
  await context.close()
}, 120_000)

it('an answer that arrives after an event of the same unit does not take the page back', async () => {
  const { page, context, faults } = await openTeam('units/new')
  await page.route('**/v1/units', async (route) => {
    if (route.request().method() !== 'POST') return await route.continue()
    const response = await route.fetch()
    const { units } = (await response.json()) as { units: { id: string; name: string }[] }
    // The list beside it has heard that the unit runs before the create is answered.
    await other.getByRole('row', { name: new RegExp(units[0]?.name ?? '') }).waitFor()
    await other.getByRole('button', { name: /^running 1$/ }).waitFor()
    await route.fulfill({ response })
  })
  const other = await context.newPage()
  await other.goto(page.url().replace(/\/new$/, ''))
  await page.getByLabel('Name', { exact: true }).fill('quick')
  await page.getByRole('button', { name: 'Create' }).click()
  await page.waitForURL(/\/units\/unit_\w+$/)
  await page.getByText('running', { exact: true }).waitFor()
  expect(faults).toEqual([])
  await context.close()
}, 120_000)

it('a fork tells where the copy is', async () => {
  const { service } = dashboard
  const team = await makeTeam(service)
  const unit = await makeUnit(service, team, { name: 'web' })
  const { page, context, faults } = await dashboard.open(team, '/t')
  await page.waitForURL(/\/units$/)
  await page.goto(`${page.url()}/${unit.id}`)
  await page.getByRole('button', { name: 'Fork' }).click()
  await page.getByRole('link', { name: /^Open web/ }).click()
  await page.getByRole('heading', { level: 1, name: /^web/ }).waitFor()
  await page.waitForURL((url) => !url.pathname.endsWith(unit.id))
  expect(faults).toEqual([])
  await context.close()
}, 120_000)
