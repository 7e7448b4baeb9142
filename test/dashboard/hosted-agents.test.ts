// Hosted agents in the dashboard, from an empty team on: a person pastes the credential of an environment, a session begins at the
// vendor, which is a control plane in memory, and the person watches it work in a unit.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { serveHostedAgents } from '../../src/agents/serve-hosted.ts'
import { type DashboardFixture, startDashboard } from '../support/dashboard.ts'
import { makeTeam, makeUnit } from '../support/make.ts'
import { type ManagedAgents, startManagedAgents } from '../support/managed-agents.ts'

/** If set, a directory for pictures of each page, light and dark, wide and narrow. */
const pictures = process.env['BERTH_TEST_PICTURES']

let dashboard: DashboardFixture
let agents: ManagedAgents
let workDir: string
let controllers: ReturnType<typeof serveHostedAgents>

beforeAll(async () => {
  dashboard = await startDashboard()
  agents = await startManagedAgents()
  workDir = await mkdtemp(join(tmpdir(), 'hosted-agents-'))
  controllers = serveHostedAgents(dashboard.service.app, {
    url: dashboard.service.baseUrl,
    vendorUrls: { claude: agents.url },
    workDir,
    timing: { idleMs: 100, pauses: { empty: 50, failed: 50, mostFailed: 200, sweep: 200, full: 100 } },
  })
}, 240_000)
afterAll(async () => {
  await controllers.stop()
  await dashboard.close()
  await agents.close()
  await rm(workDir, { recursive: true })
  expect(agents.faults).toEqual([])
})

async function picture(page: Page, name: string): Promise<void> {
  if (pictures === undefined) return
  for (const colorScheme of ['light', 'dark'] as const) {
    for (const width of [1440, 390]) {
      await page.emulateMedia({ colorScheme })
      await page.setViewportSize({ width, height: 900 })
      await page.screenshot({ path: `${pictures}/${name}-${width}-${colorScheme}.png`, fullPage: true })
    }
  }
  await page.emulateMedia({ colorScheme: 'light' })
  await page.setViewportSize({ width: 1280, height: 800 })
}

it('a person pastes a credential and watches a session work in a unit, then switches it off and deletes it', async () => {
  const team = await makeTeam(dashboard.service)
  const { page, context, faults } = await dashboard.open(team)
  await page.getByRole('link', { name: 'Agents' }).click()
  await page.getByRole('link', { name: 'Add an environment' }).waitFor()
  await picture(page, 'agents-empty')
  await page.getByRole('link', { name: 'Add an environment' }).click()
  await page.getByLabel('Environment', { exact: true }).fill(agents.environment)
  await page.getByLabel('Its key').fill('sk-ant-oat01-wrong')
  await page.getByLabel('Image').fill('node:22')
  await picture(page, 'hosted-new')
  await page.getByRole('button', { name: 'Add environment' }).click()
  await page.getByText('The environment key was refused').waitFor()
  await picture(page, 'hosted-refused')
  await page.getByRole('button', { name: 'Settings…' }).click()
  await picture(page, 'hosted-settings')
  await page.getByLabel('Another key').fill(agents.key)
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('ready', { exact: true }).waitFor()
  await picture(page, 'hosted-empty')

  const session = agents.begin()
  await agents.call(session, { name: 'write', input: { file_path: 'a.txt', content: 'x' } })
  const row = page.getByRole('row', { name: new RegExp(session.id) })
  await row.getByText('working').waitFor()
  const refused = agents.begin({ metadata: { 'berth.size': 'large' } })
  await page
    .getByRole('row', { name: new RegExp(refused.id) })
    .getByText('refused')
    .waitFor()
  // One after the other: each row moves those below it, which is no fault of the page.
  for (let count = 0; count < 3; count++)
    await page.getByRole('row', { name: new RegExp(agents.begin().id) }).waitFor()
  await page.getByText(/5 of 8|4 of 8/).waitFor({ state: 'detached' })
  await picture(page, 'hosted-full')
  await row.getByRole('link').click()
  await page.getByRole('heading', { name: /^claude-/ }).waitFor()
  await page.goBack()
  await page.getByRole('link', { name: 'Limits of all sessions' }).click()
  await page.getByRole('heading', { name: `claude ${agents.environment}` }).waitFor()
  await page.getByRole('link', { name: 'Agents' }).first().click()
  await page.getByRole('link', { name: agents.environment, exact: true }).waitFor()
  await picture(page, 'agents-full')
  await page.getByRole('link', { name: agents.environment, exact: true }).click()

  const egress = { mode: 'none', siblings: 'none' }
  const unit = await makeUnit(dashboard.service, team, {
    name: 'prepared-with-all-its-packages-1',
    size: 'small',
    egress,
  })
  await page.getByRole('button', { name: 'Settings…' }).click()
  await page.getByLabel('Begins as').selectOption({ label: `a copy of ${unit.name}` })
  await page.getByLabel('Image').waitFor({ state: 'detached' })
  await picture(page, 'hosted-copy')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('each in a copy of a unit that was prepared').waitFor()
  // Its controller has begun again.
  await page.getByText('ready', { exact: true }).waitFor()
  const copy = agents.begin()
  const copied = page.getByRole('row', { name: new RegExp(copy.id) })
  await copied.getByText('working').waitFor()
  await page.getByRole('link', { name: 'The prepared unit' }).click()
  await page.getByRole('heading', { name: unit.name }).waitFor()
  await page.goBack()
  await dashboard.service.call('DELETE', `/v1/units/${unit.id}`, { key: team.key })
  await page.getByRole('button', { name: 'Settings…' }).click()
  await page.getByText('sessions cannot begin').waitFor()
  await picture(page, 'hosted-copy-gone')
  await page.getByLabel('Begins as').selectOption('a new unit')
  await page.getByLabel('Image').waitFor()
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText(/each in a \w+ unit of/).waitFor()

  await page.getByRole('button', { name: 'Switch off' }).click()
  await page.getByRole('button', { name: 'Switch on' }).waitFor()
  await page.getByText('off', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Delete…' }).click()
  await page.getByRole('button', { name: 'Delete', exact: true }).click()
  await page.getByText('Paste the key').waitFor()
  expect(faults).toEqual([])
  await context.close()
}, 180_000)
