// The agents page: a key from its making to its end, and two people at one policy (reliability S24).

import { afterAll, beforeAll, expect, it } from 'vitest'
import type { AgentList } from '../../src/contract/agent.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { type DashboardFixture, startDashboard } from '../support/dashboard.ts'
import { makeTeam, makeUnit } from '../support/make.ts'

let dashboard: DashboardFixture

beforeAll(async () => {
  dashboard = await startDashboard()
}, 240_000)
afterAll(async () => await dashboard.close())

it('the agents page creates a key with a cap, shows it once, merges concurrent changes and revokes it', async () => {
  const team = await makeTeam(dashboard.service)
  const agents = async () =>
    (await dashboard.service.call<AgentList>('GET', '/v1/agents', { key: team.key })).body.agents
  const { page, context, faults } = await dashboard.open(team)
  await page.getByRole('link', { name: 'Agents' }).click()
  await page.getByRole('link', { name: 'New key' }).click()
  const hostile = '<img src=x onerror=alert(1)>'
  await page.getByLabel('Name').fill(hostile)
  await page.getByLabel('Euros a day').fill('3.50')
  await page.getByRole('button', { name: 'Create key' }).click()
  await page.getByRole('region', { name: 'the key' }).waitFor()
  await page
    .getByRole('region', { name: 'E2B_API_KEY' })
    .getByText(/^e2b_[0-9a-f]{76}$/)
    .waitFor()
  await page.getByRole('link', { name: 'I have saved it' }).click()
  await page.getByRole('heading', { name: hostile }).waitFor()
  const made = (await agents()).find(({ name }) => name === hostile)
  expect(made?.policy.dailySpendCapCents).toBe(350)

  await page.getByLabel('Euros a day').fill('5.00')
  const other = { policy: { dailySpendCapCents: 700, maxConcurrentUnits: 4 } }
  const session = {
    cookie: (await context.cookies()).map(({ name, value }) => `${name}=${value}`).join('; '),
  }
  const headers = { origin: dashboard.service.app.config.publicUrl, 'x-berth-team': team.teamId }
  const changed = await dashboard.service.call('PATCH', `/v1/agents/${made?.id}`, {
    ...session,
    headers,
    body: other,
  })
  expect(changed.status).toBe(200)
  await page.getByRole('button', { name: 'Keep mine' }).click()
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText(/^Saved what/).waitFor()
  expect((await agents()).find(({ id }) => id === made?.id)?.policy).toMatchObject({
    dailySpendCapCents: 500,
    maxConcurrentUnits: 4,
  })

  const running = await makeUnit(dashboard.service, team, { name: 'busy' })
  await page.goto(`${page.url().replace(/\/agents\/.*/, '')}/agents/${team.keyId}`)
  await page.getByLabel('Units at once').fill('0')
  await page.getByText('It stops at once, with its commands: busy.').waitFor()
  const { body } = await dashboard.service.call<Unit>('GET', `/v1/units/${running.id}`, {
    key: team.key,
  })
  expect(body.state).toBe('running')
  await page.goBack()

  await page.getByRole('button', { name: 'Revoke…' }).click()
  await page.getByRole('button', { name: 'Revoke', exact: true }).click()
  await page.waitForURL(/\/agents$/)
  expect((await agents()).find(({ id }) => id === made?.id)?.revokedAt).not.toBeNull()
  expect(faults).toEqual([])
  await context.close()
}, 180_000)
