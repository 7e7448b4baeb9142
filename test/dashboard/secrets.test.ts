// The secrets of a team in the dashboard: added, replaced, deleted, and never shown.

import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { accessibilityFaults } from '../support/axe.ts'
import { type DashboardFixture, startDashboard } from '../support/dashboard.ts'
import { makeSession, makeTeam } from '../support/make.ts'

let dashboard: DashboardFixture

beforeAll(async () => {
  dashboard = await startDashboard()
}, 240_000)
afterAll(async () => await dashboard.close())

it('a person adds a secret, reads why one is refused, replaces its value and deletes it, and no page shows the value', async () => {
  const team = await makeTeam(dashboard.service)
  const { page, context, faults } = await dashboard.open(team, '/t')
  await page.waitForURL(/units/)
  await page.goto(`${page.url().replace(/\/units$/, '')}/team`)
  await page.getByText('None yet. Units use a secret').waitFor()
  await page.getByRole('button', { name: 'Add a secret' }).click()
  const form = page.getByRole('form', { name: 'Secret' })
  await form.getByLabel('Name').fill('OPENAI_API_KEY')
  await form.getByLabel('Value').fill('sk-c4nary')
  await form.getByLabel('Hosts').fill('*.openai.com')
  await form.getByRole('button', { name: 'Add secret' }).click()
  await form.getByText('must be an exact name').waitFor()
  await form.getByLabel('Hosts').fill('API.openai.com')
  await form.getByRole('button', { name: 'Add secret' }).click()
  const row = page.getByRole('table', { name: 'Secrets' }).getByRole('row', { name: /OPENAI_API_KEY/ })
  await row.getByText('api.openai.com').waitFor()

  const env = { KEY: { teamSecret: 'OPENAI_API_KEY' } }
  const spec = { name: 'web', image: 'node:22', env }
  const made = await dashboard.service.call<{ units: { id: string }[] }>('POST', '/v1/units', {
    key: team.key,
    body: { spec },
  })
  const id = made.body.units[0]?.id ?? ''
  await page.getByRole('button', { name: 'Replace OPENAI_API_KEY' }).click()
  await form.getByLabel('Value').fill('sk-c4nary-2')
  await form.getByRole('button', { name: 'Replace secret' }).click()
  await page.getByText('is replaced, also in units that run').waitFor()
  expect(dashboard.service.engine.egressOf(id)?.secrets.map(({ value }) => value)).toEqual(['sk-c4nary-2'])
  expect(await page.content()).not.toContain('c4nary')

  await page.getByRole('button', { name: 'Delete OPENAI_API_KEY' }).click()
  await page.getByText('1 unit used it').waitFor()
  await page.getByRole('button', { name: 'Delete', exact: true }).click()
  await page.getByText('None yet. Units use a secret').waitFor()
  expect(dashboard.service.engine.egressOf(id)).toBeNull()
  // The browser says of the refused form that its answer was a 400, and lists become as long as what was read.
  const isExpected = (fault: string) => fault.includes('400') || fault.startsWith('the layout jumped')
  expect(faults.filter((fault) => !isExpected(fault))).toEqual([])
  await context.close()
}, 120_000)

it('a new unit takes a secret of the team by its name, and the same as code says so', async () => {
  const { service } = dashboard
  const team = await makeTeam(service)
  const { page, context, faults } = await dashboard.open(team, '/t')
  await page.waitForURL(/units/)
  await page.goto(`${page.url()}/new`)
  await page.getByText('Advanced', { exact: true }).click()
  await page.getByRole('button', { name: 'Add a variable' }).click()
  await page.getByLabel('Name 1').fill('OPENAI_API_KEY')
  await page.getByLabel('Kind 1').selectOption('secret of the team')
  await page.getByRole('option', { name: 'none yet: add one at Team' }).waitFor({ state: 'attached' })
  await page.getByRole('button', { name: 'Create' }).click()
  await page.getByText('Choose a secret of the team.').waitFor()
  expect(await accessibilityFaults(page)).toEqual({})

  const by = { cookie: await makeSession(service, team), headers: { origin: service.baseUrl } }
  const secret = { value: 'sk-c4nary', hosts: ['api.openai.com'] }
  const set = await service.call('PUT', '/v1/secrets/MODEL_KEY', { ...by, body: secret })
  expect(set.status).toBeLessThan(300)
  await page.reload()
  await page.getByText('Advanced', { exact: true }).click()
  await page.getByRole('button', { name: 'Add a variable' }).click()
  await page.getByLabel('Name 1').fill('OPENAI_API_KEY')
  await page.getByLabel('Kind 1').selectOption('secret of the team')
  await page.getByLabel('Secret of the team 1').selectOption('MODEL_KEY')
  await page
    .getByRole('region', { name: 'the call in curl' })
    .getByText('"teamSecret": "MODEL_KEY"')
    .waitFor()
  await page.getByRole('radio', { name: 'CLI' }).check()
  await page
    .getByRole('region', { name: 'the call in CLI' })
    .getByText('--secret OPENAI_API_KEY=MODEL_KEY')
    .waitFor()
  await page.getByRole('button', { name: 'Create' }).click()
  await page.getByRole('heading', { name: 'Details' }).waitFor()
  const { body } = await service.call<{ units: Unit[] }>('GET', '/v1/units', { key: team.key })
  expect(body.units[0]?.env).toEqual({ OPENAI_API_KEY: { teamSecret: 'MODEL_KEY' } })
  expect(faults.filter((fault) => !fault.startsWith('the layout jumped'))).toEqual([])
  await context.close()
}, 120_000)
