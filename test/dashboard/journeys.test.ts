// What people come to the dashboard for, from end to end.

import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Page } from 'playwright-core'
import type { Unit } from '../../src/contract/unit.ts'
import { DAY, HOUR, MINUTE } from '../../src/lib/clock.ts'
import type { Usage } from '../../src/contract/usage.ts'
import { euros } from '../../src/lib/money.ts'
import { insertMember } from '../../src/store/members.ts'
import { accessibilityFaults } from '../support/axe.ts'
import { type DashboardFixture, startDashboard } from '../support/dashboard.ts'
import { makeKey, makeTeam, makeUnit } from '../support/make.ts'

let dashboard: DashboardFixture

beforeAll(async () => {
  dashboard = await startDashboard()
  // A program that the engine in memory does not have.
  dashboard.service.engine.onExec(({ argv }) => (argv[0] === 'pg_isready' ? { exitCode: 0 } : null))
}, 240_000)
afterAll(async () => await dashboard.close())

it('a cap that is reached says so, and its units go on once it is raised', async () => {
  const { service } = dashboard
  // No day ends meanwhile.
  service.clock.advance(DAY / 2 - (service.clock.now().getTime() % (DAY / 2)) + MINUTE)
  const team = await makeTeam(service)
  const agent = await makeKey(service, { ...team, policy: { dailySpendCapCents: 1 } })
  const unit = await makeUnit(
    service,
    { key: agent.secret },
    { name: 'worker', size: 'large', sleep: 'never' },
  )
  const { page, context, faults } = await dashboard.open(team, '/t')
  await page.getByRole('link', { name: 'worker' }).click()
  await page.getByRole('heading', { name: 'Details' }).waitFor()
  service.clock.advance(HOUR)
  await page.getByText('its agent has spent its cap of today').first().waitFor()
  await page.getByRole('link', { name: 'Spend' }).click()
  await page.getByRole('list', { name: 'Near their limit' }).getByRole('link').first().click()
  await page.getByLabel('Euros a day').fill('5.00')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText(/^Saved what/).waitFor()
  const woken = await service.call('POST', `/v1/units/${unit.id}/exec`, {
    key: agent.secret,
    body: { cmd: ['echo', 'on'] },
  })
  expect(woken.body).toMatchObject({ stdout: 'on\n' })
  expect(faults).toEqual([])
  await context.close()
}, 120_000)

it('a database is made from its recipe, forked, and compared with its copy in two terminals', async () => {
  const { service } = dashboard
  const team = await makeTeam(service)
  const { page, context, faults } = await dashboard.open(team, '/t')
  await page.getByRole('link', { name: 'Recipes' }).click()
  await page.getByRole('link', { name: 'PostgreSQL 15' }).click()
  await page.getByRole('button', { name: 'Create' }).click()
  await page.getByText('DATABASE_URL').first().waitFor()
  const find = async () =>
    (await service.call<{ units: Unit[] }>('GET', '/v1/units', { key: team.key })).body.units
  await expect.poll(async () => (await find())[0]?.state).toBe('running')
  const [source] = await find()
  await page.waitForURL(/\/units\/unit_\w+$/)
  const base = page.url().replace(/\/[^/]+$/, '')
  await page.goto(`${base}/${source?.id}`)
  await page.getByRole('button', { name: 'Fork' }).click()
  await page.getByText('is copied as').first().waitFor()
  const copy = (await find()).find(({ forkedFrom }) => forkedFrom === source?.id)
  const other = await context.newPage()
  await openTerminal(page, `${base}/${source?.id}`)
  await openTerminal(other, `${base}/${copy?.id}`)
  await type(page, 'echo of the source > /tmp/which')
  await type(other, 'echo of the copy > /tmp/which')
  await type(page, 'cat /tmp/which')
  await type(other, 'cat /tmp/which')
  await page.locator('.xterm-rows').getByText('of the source', { exact: true }).waitFor()
  await other.locator('.xterm-rows').getByText('of the copy', { exact: true }).waitFor()
  expect(faults).toEqual([])
  await context.close()
}, 180_000)

async function openTerminal(page: Page, unit: string): Promise<void> {
  await page.goto(unit)
  await page.getByRole('navigation', { name: 'This unit' }).getByRole('link', { name: 'Terminal' }).click()
  await page.getByText('Connected.', { exact: true }).waitFor()
  await page.locator('.xterm-rows').getByText('$').last().waitFor()
}

async function type(page: Page, line: string): Promise<void> {
  await page.bringToFront()
  await page.locator('.xterm-helper-textarea').focus()
  await page.keyboard.type(`${line}\n`)
}

it('a member is invited by mail, accepts as themselves, and sees the units of the team', async () => {
  const { service } = dashboard
  const team = await makeTeam(service)
  const guest = await makeTeam(service)
  const { page, context, faults } = await dashboard.open(team, '/t')
  await page.getByRole('button', { name: /^Team/ }).click()
  await page.getByRole('menuitem', { name: /account/ }).click()
  await page.getByLabel('New team').fill('Shop')
  await page.getByRole('button', { name: 'Create team' }).click()
  await page.getByRole('link', { name: 'Shop' }).click()
  await page.getByRole('link', { name: 'Team', exact: true }).click()
  await page.getByLabel('Email address').fill(guest.email)
  await page.getByRole('button', { name: 'Send the invitation' }).click()
  await page.getByText(`${guest.email} is invited. The link is in their mail`).first().waitFor()
  await expect.poll(async () => (await service.mailTo(guest.email)).length).toBeGreaterThan(0)
  const link = /https?:\/\/\S+\/invites\/\S+/.exec(
    (await service.mailTo(guest.email)).at(-1)?.text ?? '',
  )?.[0]
  const theirs = await dashboard.open(guest, new URL(link ?? '').pathname)
  await theirs.page.getByRole('button', { name: /Join|Accept/ }).click()
  await theirs.page.waitForURL(/\/t\/|\/account/)
  await page.getByRole('table', { name: 'Members' }).getByText(guest.email).waitFor()
  await page.getByRole('heading', { name: 'Invitations' }).waitFor({ state: 'detached' })
  // The list of invitations grows by what was asked for, and moves what is below it.
  expect(faults.filter((fault) => !fault.startsWith('the layout jumped'))).toEqual([])
  await theirs.context.close()
  await context.close()
}, 120_000)

it('the first team of a Berth is shared by its person, and one on the hobby plan says how it gets room', async () => {
  const { service } = dashboard
  const { db } = service.app
  const team = await makeTeam(service)
  const guest = await makeTeam(service)
  const { page, context, faults } = await dashboard.open(team, '/t')
  await page.getByRole('link', { name: 'Team', exact: true }).click()
  await page.getByLabel('Email address').fill(guest.email)
  await page.getByRole('button', { name: 'Send the invitation' }).click()
  await page.getByText(`${guest.email} is invited. The link is in their mail`).first().waitFor()
  await insertMember(db, { ...team, userId: guest.userId, role: 'member', at: service.clock.now() })
  await page.reload()
  await page.getByRole('combobox', { name: 'Role of Person' }).waitFor()
  // The person of the team stays its only owner.
  expect(await page.getByRole('combobox', { name: 'Role of Person' }).count()).toBe(1)
  expect(faults.filter((fault) => !fault.startsWith('the layout jumped'))).toEqual([])
  await context.close()

  await db.updateTable('teams').set({ plan: 'hobby' }).where('id', '=', guest.teamId).execute()
  const theirs = await dashboard.open(guest, `/t/${guest.teamId.replace('_', '-')}/team`)
  await theirs.page
    .getByRole('region', { name: 'the operator’s command' })
    .getByText('npm run team -- set')
    .waitFor()
  expect(await theirs.page.getByLabel('Email address').count()).toBe(0)
  await theirs.context.close()
}, 120_000)

it('the bill says what each day cost, for which units and agents, and what it will come to', async () => {
  const { service } = dashboard
  service.clock.advance(DAY / 2 - (service.clock.now().getTime() % (DAY / 2)) + MINUTE)
  const team = await makeTeam(service)
  const agent = await makeKey(service, team)
  for (const [name, size] of [
    ['builder', 'large'],
    ['small-one', 'small'],
  ] as const)
    await makeUnit(service, { key: agent.secret }, { name, size, sleep: 'never' })
  service.clock.advance(2 * HOUR)
  const { page, context, faults } = await dashboard.open(team, '/t')
  await page.getByRole('link', { name: 'Spend' }).click()
  const { body } = await service.call<Usage>('GET', '/v1/usage?days=30&by=unit', { key: team.key })
  expect(body.totalCents).toBeGreaterThan(0)
  await page.getByText(`: ${euros(body.totalCents)}`).waitFor()
  await page.getByRole('row', { name: /large 2\.0/ }).waitFor()
  const rows = page.getByRole('table', { name: 'Cost of each' }).getByRole('row')
  await rows.getByText('builder').waitFor()
  expect((await rows.allTextContents()).map((text) => text.replace(/€.*/, ''))).toEqual([
    'NameCost',
    'builder/builder',
    'small-one/small-one',
  ])
  await page.getByLabel('Breakdown').selectOption('by agent')
  await rows.getByText('test key').waitFor()
  await page.getByText('Projected this month').waitFor()
  expect(await accessibilityFaults(page)).toEqual({})
  expect(faults).toEqual([])
  await context.close()
}, 120_000)

it('a cost below a hundredth of a cent is said in words, with its digits in the tooltip', async () => {
  const { service } = dashboard
  const team = await makeTeam(service)
  const unit = await makeUnit(service, team, { name: 'web', size: 'small', sleep: 'never' })
  service.clock.advance(MINUTE)
  const { page, context } = await dashboard.open(team, '/t')
  const cost = page.getByRole('row', { name: /web/ }).getByText('< €0.0001')
  expect(await cost.getAttribute('title')).toMatch(/^€0\.0000\d+$/)
  await page.goto(`${page.url()}/${unit.id}`)
  await page.getByText('less than €0.0001', { exact: true }).first().waitFor()
  await context.close()
}, 120_000)

it('a page of which a part cannot be read says so, shows the rest, and does not ask again by itself', async () => {
  const team = await makeTeam(dashboard.service)
  const { page, context } = await dashboard.open(team, '/t')
  await page.waitForURL(/\/units$/)
  let asked = 0
  const error = { code: 'internal', message: 'The operator has been told.', requestId: 'req_1' }
  await page.route('**/v1/agents', async (route) => {
    asked += 1
    await route.fulfill({ status: 500, contentType: 'application/json', body: JSON.stringify({ error }) })
  })
  await page.goto(page.url().replace(/units$/, 'spend'))
  await page.getByRole('alert').getByText('tell the operator the request below').waitFor()
  await page.getByText('This month so far').waitFor()
  expect(asked).toBe(1)
  await page.unroute('**/v1/agents')
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByRole('alert').waitFor({ state: 'detached' })
  await context.close()
}, 120_000)

it('without a network it says since when, keeps what is shown, and goes on by itself', async () => {
  const team = await makeTeam(dashboard.service)
  const unit = await makeUnit(dashboard.service, team, { name: 'web' })
  const { page, context } = await dashboard.open(team, '/t')
  await page.getByText('live', { exact: true }).waitFor()
  await page.getByRole('link', { name: 'web' }).click()
  await page.getByRole('heading', { name: 'Details' }).waitFor()
  await context.setOffline(true)
  await page.getByText(/^Not live since/).waitFor()
  await page.getByRole('link', { name: 'Settings' }).click()
  await page.getByRole('alert').getByText('Berth cannot be reached').waitFor()
  await context.setOffline(false)
  await page.getByText(/^Not live since/).waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByRole('heading', { name: 'Destroy this unit' }).waitFor()
  expect(page.url()).toContain(unit.id)
  await context.close()
}, 120_000)

it('a server that restarts under open pages is told of, and pages and a terminal go on without a reload', async () => {
  const { service } = dashboard
  const team = await makeTeam(service)
  const unit = await makeUnit(service, team, { name: 'web' })
  const { page, context } = await dashboard.open(team, '/t')
  await page.getByText('live', { exact: true }).waitFor()
  const terminal = await context.newPage()
  await terminal.goto(`${page.url()}/${unit.id}/terminal`)
  await terminal.getByText('Connected.', { exact: true }).waitFor()
  const listenAgain = await service.stopListening()
  for (const each of [page, terminal]) await each.getByText(/^Not live since/).waitFor()
  await terminal.getByText('The connection was lost. What runs goes on for ten minutes.').waitFor()
  await listenAgain()
  for (const each of [page, terminal])
    await each.getByText(/^Not live since/).waitFor({ state: 'detached', timeout: 60_000 })
  await makeUnit(service, team, { name: 'made-after' })
  await page.getByRole('row', { name: /made-after/ }).waitFor()
  await terminal.getByRole('button', { name: 'Connect again' }).click()
  await terminal.getByText('Connected.', { exact: true }).waitFor()
  await context.close()
}, 180_000)

it('a session that ends leads to the sign-in, which says so, and a refused form shows why', async () => {
  const team = await makeTeam(dashboard.service)
  const { page, context } = await dashboard.open(team, '/t')
  await page.waitForURL(/\/units$/)
  await page.goto(`${page.url()}/new`)
  await page.route('**/v1/units', async (route) => {
    const error = { code: 'payment_required', message: 'The team has no credits left.', requestId: 'req_1' }
    if (route.request().method() !== 'POST') return await route.continue()
    await route.fulfill({ status: 402, contentType: 'application/json', body: JSON.stringify({ error }) })
  })
  await page.getByLabel('Image').fill('node:22')
  await page.getByRole('button', { name: 'Create' }).click()
  const why = page.getByRole('alert').getByText('This costs more than is left')
  await why.waitFor()
  await expect.poll(async () => await isInSight(page, why)).toBe(true)
  await page.getByRole('link', { name: 'See the credits' }).waitFor()
  await page.unroute('**/v1/units')
  await dashboard.service.app.db.deleteFrom('sessions').execute()
  await page.getByRole('button', { name: 'Create' }).click()
  await page.getByText('You are signed out. Signing in leads back to where you were.').waitFor()
  await context.close()
}, 120_000)

async function isInSight(page: Page, what: ReturnType<Page['locator']>): Promise<boolean> {
  const box = await what.boundingBox()
  const size = page.viewportSize()
  return box !== null && size !== null && box.y >= 0 && box.y + box.height <= size.height
}
