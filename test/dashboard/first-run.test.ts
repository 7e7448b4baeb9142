// A team without units: a shell and a page at a URL in a few clicks, and code that is filled in by a key.

import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { accessibilityFaults } from '../support/axe.ts'
import { type DashboardFixture, startDashboard } from '../support/dashboard.ts'
import { makeTeam, makeUnit } from '../support/make.ts'

let dashboard: DashboardFixture

beforeAll(async () => {
  dashboard = await startDashboard()
  dashboard.service.engine.onExec(({ argv }) => (argv[0] === 'pg_isready' ? { exitCode: 0 } : null))
}, 240_000)
afterAll(async () => await dashboard.close())

async function openEmpty() {
  const team = await makeTeam(dashboard.service)
  const opened = await dashboard.open(team, '/t')
  await opened.page.getByRole('heading', { name: 'Start your first unit' }).waitFor()
  return { team, ...opened }
}

it('one click in an empty team opens a shell, which shows the build of its image until it runs', async () => {
  const { engine } = dashboard.service
  const { page, context, faults } = await openEmpty()
  const goOn = engine.hang('pull')
  await page.getByRole('button', { name: 'Open a shell' }).click()
  await page.waitForURL(/\/units\/unit_\w+\/terminal$/)
  const id = /unit_\w+/.exec(page.url())?.[0] ?? ''
  await page.getByRole('heading', { name: 'Being created' }).waitFor()
  const pull = { machines: [id], ageMs: 5000, bytes: null, stage: 'building', lines: ['Setting up python3'] }
  engine.tellPulls([{ ...pull, stage: 'building' }])
  await page.getByRole('log', { name: 'Build of the image' }).getByText('Setting up python3').waitFor()
  expect(await accessibilityFaults(page)).toEqual({})
  goOn()
  await page.getByText('Connected.', { exact: true }).waitFor()
  await page.locator('.xterm-helper-textarea').focus()
  await page.keyboard.type('echo from the shell > /tmp/said; cat /tmp/said\n')
  await page.locator('.xterm-rows').getByText('from the shell', { exact: true }).waitFor()
  expect(faults).toEqual([])
  await context.close()
}, 120_000)

it('two clicks in an empty team lead to a page at a public URL', async () => {
  const { page, context, faults, team } = await openEmpty()
  await page.getByRole('button', { name: 'Publish a page' }).click()
  await page.waitForURL(/\/units\/unit_\w+$/)
  const open = page.getByRole('link', { name: 'Open' }).first()
  await open.waitFor()
  const { body } = await dashboard.service.call<{ units: [Unit] }>('GET', '/v1/units', { key: team.key })
  expect(await open.getAttribute('href')).toBe(body.units[0].endpoints[0]?.url)
  expect(body.units[0].endpoints[0]?.mode).toBe('public')
  expect(faults).toEqual([])
  await context.close()
}, 120_000)

it('a database made by one click shows its password once', async () => {
  const { page, context, faults } = await openEmpty()
  await page.getByRole('button', { name: 'Create a database' }).click()
  await page.waitForURL(/\/units\/unit_\w+$/)
  await page.getByRole('region', { name: 'Passwords, shown once' }).getByText('POSTGRES_PASSWORD').waitFor()
  expect(faults).toEqual([])
  await context.close()
}, 120_000)

it('Create key fills the code of every language with a key that works, until the person has copied it', async () => {
  const { service } = dashboard
  const { page, context, faults, team } = await openEmpty()
  const code = page.getByRole('region', { name: /^the first unit by/ })
  expect(await code.textContent()).toContain(`${service.baseUrl}/mcp`)
  await page.getByRole('radio', { name: 'curl' }).check()
  expect(await code.textContent()).toContain('YOUR_KEY')
  await page.getByRole('button', { name: 'Create key' }).click()
  await code.getByText(/berth_live_/).waitFor()
  const key = /berth_live_[^"\s]+/.exec((await code.textContent()) ?? '')?.[0] ?? ''
  for (const language of ['CLI', 'TypeScript', 'Python']) {
    await page.getByRole('radio', { name: language }).check()
    expect(await code.textContent()).toContain(key)
  }
  expect((await service.call('GET', '/v1/units', { key })).status).toBe(200)
  await makeUnit(service, team, { name: 'first' })
  await page.getByRole('status').getByRole('link', { name: 'first' }).waitFor()
  await page.getByRole('button', { name: 'I have copied it' }).click()
  await page.getByRole('row', { name: /first/ }).waitFor()
  expect(faults).toEqual([])
  await context.close()
}, 120_000)

it('the terminal of a stopped unit offers to start it, and opens once it runs', async () => {
  const { service } = dashboard
  const team = await makeTeam(service)
  const unit = await makeUnit(service, team, { name: 'web' })
  await service.call('POST', `/v1/units/${unit.id}/stop`, { key: team.key })
  const { page, context, faults } = await dashboard.open(team, '/t')
  await page.waitForURL(/\/units$/)
  await page.goto(`${page.url()}/${unit.id}/terminal`)
  await page.getByText('This unit is stopped.').waitFor()
  await page
    .getByRole('region', { name: 'Terminal' })
    .locator('..')
    .getByRole('button', { name: 'Start' })
    .click()
  await page.getByText('Connected.', { exact: true }).waitFor()
  expect(faults).toEqual([])
  await context.close()
}, 120_000)
