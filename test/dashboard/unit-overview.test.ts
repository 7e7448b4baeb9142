// The page of a unit shows its life: what it used, when it ran, what was done to it and by whom; the list shows the last day.

import { afterAll, beforeAll, expect, it } from 'vitest'
import { hibernateFrozenUnits } from '../../src/domain/units/activity/idle.ts'
import { recordMetrics } from '../../src/domain/units/metrics-history.ts'
import { MINUTE } from '../../src/lib/clock.ts'
import { addUnitCheckpoint } from '../../src/store/unit-checkpoints.ts'
import { accessibilityFaults } from '../support/axe.ts'
import { type DashboardFixture, screens, startDashboard } from '../support/dashboard.ts'
import { makeKey, makeTeam, makeUnit } from '../support/make.ts'

let dashboard: DashboardFixture

beforeAll(async () => {
  dashboard = await startDashboard()
}, 240_000)
afterAll(async () => await dashboard.close())

/** A unit that has run for ten minutes, slept for ten, and runs again. */
async function openUsed() {
  const { service } = dashboard
  const team = await makeTeam(service)
  const agent = await makeKey(service, team)
  const unit = await makeUnit(service, { key: agent.secret }, { name: 'web', sleep: '2h' })
  const call = async (path: string, body?: unknown) =>
    await service.call('POST', `/v1/units/${unit.id}${path}`, { key: agent.secret, body })
  const run = async (minutes: number) => {
    for (let minute = 0; minute < minutes; minute += 1) {
      service.clock.advance(MINUTE)
      await recordMetrics(service.app)
    }
  }
  await run(10)
  await call('/sleep', { sleep: '2h', now: true })
  service.clock.advance(10 * MINUTE)
  await call('/start')
  await run(2)
  await call('/exec', { cmd: ['sh', '-c', 'echo <b>built</b>'] })
  await service.call('GET', `/v1/units/${unit.id}`, { key: agent.secret })
  const opened = await dashboard.open(team, '/t')
  await opened.page.waitForURL(/\/units$/)
  return { ...opened, unit, call }
}

it('the overview plots a day of a unit by keyboard, says how long it ran, and opens on a month', async () => {
  const { page, context, faults, unit } = await openUsed()
  await page.goto(`${page.url()}/${unit.id}`)
  const processor = page.getByRole('slider', { name: 'Processor over time' })
  await expect.poll(async () => Number(await processor.getAttribute('aria-valuemax'))).toBeGreaterThan(2)
  await processor.focus()
  await page.keyboard.press('Home')
  await expect.poll(async () => await processor.getAttribute('aria-valuetext')).toMatch(/^\d+(\.\d)?% /)
  await page.getByRole('img', { name: /^Ran \d+ min of 24 h, for about [\d.]+ cents\./ }).waitFor()
  await page.getByRole('radio', { name: 'Month' }).check()
  await page.getByRole('img', { name: /^Ran \d+ h of 30 days, for about [\d.]+ cents\./ }).waitFor()
  await page.getByRole('link', { name: 'Live metrics' }).click()
  await page.getByRole('heading', { name: 'Memory' }).waitFor()
  expect(faults).toEqual([])
  await context.close()
}, 120_000)

it('the time line has each checkpoint of the memory, kept or lost', async () => {
  const { page, context, faults, unit, call } = await openUsed()
  const { service } = dashboard
  await call('/sleep', { sleep: '2h', now: true })
  service.clock.advance((service.app.config.frozenForMs ?? 0) + MINUTE)
  await hibernateFrozenUnits(service.app)
  await addUnitCheckpoint(service.app.db, {
    unitId: unit.id,
    generation: 0,
    at: new Date(service.clock.now().getTime() - 5 * MINUTE),
    kept: false,
  })
  await page.goto(`${page.url()}/${unit.id}`)
  const changes = page.getByRole('list', { name: 'Changes' }).getByRole('listitem')
  await changes.filter({ hasText: 'Berth saved its memory while it slept' }).first().waitFor()
  await changes.filter({ hasText: 'Berth could not save its memory' }).waitFor()
  await page.getByRole('img', { name: / Memory saved (?:once|2 times), lost once\.$/ }).waitFor()
  expect(await accessibilityFaults(page)).toEqual({})
  expect(faults).toEqual([])
  await context.close()
}, 120_000)

it('activity is sentences of who did what, changes first, every call on request, with details beside', async () => {
  const { page, context, faults, unit } = await openUsed()
  await page.goto(`${page.url()}/${unit.id}/activity`)
  const rows = page.getByRole('list', { name: 'Calls' }).getByRole('listitem')
  await rows.getByText('echo <b>built</b>').waitFor()
  const said = await rows.filter({ hasText: 'ran a command in' }).first().innerText()
  expect(said).toContain('test key')
  expect(await rows.filter({ hasText: 'unit.get' }).count()).toBe(0)
  await page.getByRole('radio', { name: 'All calls' }).check()
  await rows.filter({ hasText: 'unit.get' }).first().waitFor()
  await page.getByRole('radio', { name: 'Changes' }).check()
  await page
    .getByRole('button', { name: /^Details of unit\.exec/ })
    .first()
    .click()
  const details = page.getByRole('complementary', { name: 'Details of the call' })
  await details.getByText('unit.exec', { exact: true }).waitFor()
  expect(faults).toEqual([])
  await context.close()
}, 120_000)

it('the list shows the last day of a unit, and on a phone its size and image below its name', async () => {
  const { page, context, faults } = await openUsed()
  await page.getByRole('img', { name: 'Processor in the last day' }).waitFor()
  await page.setViewportSize(screens.narrow)
  const row = page.getByRole('row', { name: /web/ })
  await row.getByText(/^small · /).waitFor()
  for (const name of ['Units', 'Recipes', 'Spend', 'Help'])
    expect(await page.getByRole('link', { name, exact: true }).innerText()).toBe(name)
  expect(faults.filter((fault) => !fault.startsWith('the layout jumped'))).toEqual([])
  await context.close()
}, 120_000)

it('the head of a unit has one main action for its state, and its settings alone can destroy it', async () => {
  const { page, context, faults, unit } = await openUsed()
  const base = `${page.url()}/${unit.id}`
  await page.goto(base)
  const head = page.locator('header')
  await head.getByRole('link', { name: 'Terminal' }).waitFor()
  expect(await page.getByRole('button', { name: 'Destroy…' }).count()).toBe(0)
  await page.getByRole('button', { name: 'More actions' }).click()
  await page.getByRole('menuitem', { name: 'Sleep now' }).click()
  await head.getByRole('button', { name: 'Wake' }).click()
  await head.getByRole('link', { name: 'Terminal' }).waitFor()
  await page.goto(`${base}/settings`)
  await page.getByRole('button', { name: 'Destroy…' }).waitFor()
  expect(faults).toEqual([])
  await context.close()
}, 120_000)
