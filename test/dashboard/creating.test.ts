// The first unit of an image takes minutes: its page says what is done for it, since when, and what the build says, live.

import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { accessibilityFaults } from '../support/axe.ts'
import { type DashboardFixture, startDashboard } from '../support/dashboard.ts'
import { makeTeam } from '../support/make.ts'

let dashboard: DashboardFixture

beforeAll(async () => {
  dashboard = await startDashboard()
}, 240_000)
afterAll(async () => await dashboard.close())

it('the page of a unit that waits for its image shows stage, time, bytes and log, live, until it runs', async () => {
  const { service } = dashboard
  const team = await makeTeam(service)
  const goOn = service.engine.hang('pull')
  const { body } = await service.call<{ units: [Unit] }>('POST', '/v1/units', {
    key: team.key,
    body: { spec: { name: 'first', image: 'berth.local/python:3.11' }, wait: false },
  })
  const [unit] = body.units
  const { page, context, faults } = await dashboard.open(team, '/t')
  await page.getByText('live', { exact: true }).waitFor()
  await page.goto(`${page.url()}/${unit.id}`)
  const card = page.locator('section', { has: page.getByRole('heading', { name: 'Being created' }) })
  await card.getByText('Preparing its disk and network').waitFor()
  const pull = { machines: [unit.id], ageMs: 65_000, bytes: null, lines: [] }
  service.engine.tellPulls([{ ...pull, stage: 'downloading', bytes: { done: 12e6, total: 80e6 } }])
  await card.getByText('Downloading the image: 12 of 80 MB').waitFor()
  await card.getByText(/\d+ min \d+ s/).waitFor()
  service.engine.tellPulls([{ ...pull, stage: 'building', lines: ['Setting up <b>libc6</b> 2.36'] }])
  await card.getByRole('status').getByText('Building the image').waitFor()
  await card.getByRole('log', { name: 'Build of the image' }).getByText('<b>libc6</b>').waitFor()
  expect(await accessibilityFaults(page)).toEqual({})
  await page.getByRole('link', { name: 'Logs' }).click()
  await page.getByRole('log', { name: 'Build of the image' }).waitFor()
  await page.getByRole('link', { name: 'Overview' }).click()
  goOn()
  await page.getByRole('heading', { name: 'Run a command' }).waitFor()
  expect(await card.count()).toBe(0)
  expect(faults).toEqual([])
  await context.close()
}, 120_000)
