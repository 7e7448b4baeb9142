// The tabs of a unit: a person works in it as an agent does, and what it prints stays text (reliability S24).

import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { accessibilityFaults } from '../support/axe.ts'
import { type DashboardFixture, startDashboard } from '../support/dashboard.ts'
import { makeTeam, makeUnit } from '../support/make.ts'

let dashboard: DashboardFixture

beforeAll(async () => {
  dashboard = await startDashboard()
}, 240_000)
afterAll(async () => await dashboard.close())

async function openUnit(tab: string, spec: Parameters<typeof makeUnit>[2] = {}) {
  const team = await makeTeam(dashboard.service)
  const cmd = ['sh', '-c', 'echo begun; sleep infinity']
  const unit = await makeUnit(dashboard.service, team, { cmd, ...spec })
  const { page, context, faults } = await dashboard.open(team, '/t')
  await page.waitForURL(/\/units$/)
  await page.goto(`${page.url()}/${unit.id}/${tab}`)
  const read = async () =>
    (await dashboard.service.call<Unit>('GET', `/v1/units/${unit.id}`, { key: team.key })).body
  const path = `/v1/units/${unit.id}/files`
  const write = async (file: string, content: string | Buffer) =>
    await dashboard.service.call('POST', path, {
      key: team.key,
      body: { path: file, contentBase64: Buffer.from(content).toString('base64') },
    })
  const call = async (method: string, below: string, body?: object) =>
    await dashboard.service.call(method, `/v1/units/${unit.id}${below}`, { key: team.key, body })
  const print = (line: string) => dashboard.service.engine.print(unit.id, line)
  return { page, context, faults, read, write, call, print }
}

it('the terminal tab runs input, survives endless output, shows the exit code and reconnects', async () => {
  const { page, context, faults } = await openUnit('terminal')
  const screen = page.locator('.xterm-rows')
  const shows = async (text: string) => await screen.getByText(text).last().waitFor()
  await page.getByText('Connected.', { exact: true }).waitFor()
  await shows('$')
  await page.keyboard.type('echo first; echo second\n')
  await screen.getByText('second', { exact: true }).waitFor()
  await page.keyboard.type('yes flood\n')
  await screen.getByText('flood', { exact: true }).first().waitFor()
  // The page still answers while the unit prints as fast as it can.
  await page.keyboard.press('Control+c')
  await page.keyboard.type('exit 7\n')
  await page.getByText('Closed with exit code 7.').waitFor()
  await page.keyboard.press('Control+F6')
  await page.getByRole('button', { name: 'Connect again' }).click()
  await page.getByText('Connected.', { exact: true }).waitFor()
  expect(faults).toEqual([])
  await context.close()
}, 180_000)

it('a terminal is still there after a reload, and in another tab is another one', async () => {
  const { page, context, faults } = await openUnit('terminal')
  const shown = (on: typeof page, text: string) => on.locator('.xterm-rows').getByText(text, { exact: true })
  await page.getByText('Connected.', { exact: true }).waitFor()
  await page.keyboard.type('echo before\n')
  await shown(page, 'before').waitFor()
  await page.reload()
  await shown(page, 'before').waitFor()
  await page.keyboard.type('echo after\n')
  await shown(page, 'after').waitFor()
  const other = await context.newPage()
  await other.goto(page.url())
  await other.getByText('Connected.', { exact: true }).waitFor()
  await other.keyboard.type('echo other\n')
  await shown(other, 'other').waitFor()
  expect(await shown(other, 'before').count()).toBe(0)
  await page.getByText('Connected.', { exact: true }).waitFor()
  expect(faults).toEqual([])
  await context.close()
}, 180_000)

it('the logs tab follows, searches and pauses the log', async () => {
  const { page, context, faults } = await openUnit('logs')
  await page.getByRole('log').getByText('begun').waitFor()
  await page.getByRole('searchbox').fill('nothing like it')
  await page.getByText('No line matches.').waitFor()
  await page.getByRole('searchbox').fill('BEGUN')
  await page.getByText(/^1 lines?$/).waitFor()
  await page.getByRole('button', { name: 'Pause' }).click()
  await page.getByText(/^Paused/).waitFor()
  expect(faults).toEqual([])
  await context.close()
}, 120_000)

it('a log whose connection is lost says so, and goes on behind its last line by itself', async () => {
  const { page, context, print } = await openUnit('logs')
  const log = page.getByRole('log')
  const linesOnPage = async () =>
    (await log.getByText(/^line \d+$/).allTextContents()).map((text) => Number(text.slice(5)))
  await log.getByText('begun').waitFor()
  print('line 1')
  await log.getByText('line 1', { exact: true }).waitFor()
  await context.setOffline(true)
  await page
    .getByRole('status')
    .getByText(/^Not live since .*; trying again\.$/)
    .waitFor()
  print('line 2')
  await context.setOffline(false)
  await page.getByRole('status').getByText('Live', { exact: true }).waitFor()
  await log.getByText('line 2', { exact: true }).waitFor()
  const listenAgain = await dashboard.service.stopListening()
  await page
    .getByRole('status')
    .getByText(/^Not live since .*; trying again\.$/)
    .waitFor()
  print('line 3')
  await listenAgain()
  await page.getByRole('status').getByText('Live', { exact: true }).waitFor({ timeout: 60_000 })
  print('line 4')
  await log.getByText('line 4', { exact: true }).waitFor()
  expect(await linesOnPage()).toEqual([1, 2, 3, 4])
  expect(await log.getByText('begun').count()).toBe(1)
  await context.close()
}, 180_000)

it('the metrics tab samples usage, can be read by keyboard, and shows that a unit sleeps or is stopped', async () => {
  const { page, context, faults, read, call } = await openUnit('metrics')
  await page.getByText(/^Updated every two seconds/).waitFor()
  const memory = page.getByRole('slider', { name: 'Memory over five minutes' })
  await memory.focus()
  expect(await memory.getAttribute('aria-valuetext')).toBe('24 MiB')
  await expect.poll(async () => Number(await memory.getAttribute('aria-valuemax'))).toBeGreaterThan(2)
  await page.keyboard.press('Home')
  await expect.poll(async () => await memory.getAttribute('aria-valuetext')).toMatch(/^24 MiB \d+ s before$/)
  await call('POST', '/sleep', { sleep: '30m', now: true })
  await page.getByText('stands still in memory').waitFor()
  expect((await read()).state).toBe('sleeping')
  await call('POST', '/stop')
  await page.getByText('nothing runs in it').waitFor()
  await page.keyboard.press('End')
  await expect.poll(async () => await memory.getAttribute('aria-valuetext')).toBe('–')
  expect(faults).toEqual([])
  await context.close()
}, 120_000)

it('the files tab browses, shows, uploads, downloads and deletes files', async () => {
  const { page, context, faults, write } = await openUnit('settings')
  await write('/srv/page.html', '<img src=x onerror=alert(1)>')
  await page.goto(page.url().replace(/\/[^/]+$/, '/files'))
  await page.getByRole('link', { name: 'srv' }).click()
  await page.getByRole('link', { name: 'page.html' }).click()
  await page.getByRole('region', { name: 'page.html', exact: true }).getByText('<img src=x').waitFor()
  await page.getByRole('link', { name: 'Close' }).click()
  await page.locator('input[type=file]').setInputFiles({
    name: 'brought.txt',
    mimeType: 'text/plain',
    buffer: Buffer.from('from my machine'),
  })
  await page.getByRole('link', { name: 'brought.txt' }).waitFor()
  const [archive] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Download as tar' }).click(),
  ])
  expect(archive.suggestedFilename()).toBe('srv.tar')
  await page.getByRole('button', { name: 'Actions of brought.txt' }).click()
  await page.getByRole('menuitem', { name: 'Delete…' }).click()
  await page.getByRole('button', { name: 'Delete it' }).click()
  await page.getByRole('link', { name: 'brought.txt' }).waitFor({ state: 'detached' })
  expect(faults).toEqual([])
  await context.close()
}, 120_000)

it('the files tab opens where the program works, draws pictures, makes folders and renames', async () => {
  dashboard.service.engine.setImage('docker.io/library/works-in:1', { workingDir: '/srv/app' })
  const { page, context, faults, write } = await openUnit('settings', { image: 'works-in:1' })
  await write('/srv/app/notes.txt', 'some')
  await write('/srv/app/taken.txt', 'other')
  const dot =
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
  await write('/srv/app/dot.png', Buffer.from(dot, 'base64'))
  await page.getByRole('navigation', { name: 'This unit' }).getByRole('link', { name: 'Files' }).click()
  await page.getByRole('table', { name: 'What is in /srv/app' }).waitFor()
  await page.getByRole('button', { name: 'New folder' }).click()
  await page.getByRole('textbox', { name: 'Name' }).fill('a/b')
  await page.getByRole('button', { name: 'Create' }).click()
  await page.getByText('A name has no slash').waitFor()
  await page.getByRole('textbox', { name: 'Name' }).fill('pictures')
  await page.getByRole('button', { name: 'Create' }).click()
  await page.getByRole('link', { name: 'pictures' }).waitFor()
  await page.getByRole('button', { name: 'Actions of notes.txt' }).click()
  await page.getByRole('menuitem', { name: 'Rename…' }).click()
  await page.getByRole('textbox', { name: 'Name' }).fill('taken.txt')
  await page.getByRole('dialog').getByRole('button', { name: 'Rename' }).click()
  await page.getByText('There is a "taken.txt" in this folder already.').waitFor()
  await page.getByRole('textbox', { name: 'Name' }).fill('read.txt')
  await page.getByRole('dialog').getByRole('button', { name: 'Rename' }).click()
  await page.getByRole('link', { name: 'read.txt' }).waitFor()
  expect(await page.getByRole('link', { name: 'notes.txt' }).count()).toBe(0)
  await page.getByRole('link', { name: 'dot.png' }).click()
  const picture = page.getByRole('img', { name: 'dot.png' })
  await picture.waitFor()
  const widthOf = `document.querySelector('img[alt="dot.png"]').naturalWidth`
  await expect.poll(async () => await page.evaluate(widthOf)).toBe(1)
  expect(await accessibilityFaults(page)).toEqual({})
  await page.getByRole('link', { name: 'root' }).click()
  await page.getByRole('link', { name: 'srv' }).waitFor()
  expect(faults).toEqual([])
  await context.close()
}, 120_000)

it('the settings, forks and activity tabs change the sleep window, show a fork and list past calls', async () => {
  const { page, context, faults, read } = await openUnit('settings')
  await page.getByLabel('Sleeps after').fill('45m')
  await page.getByRole('button', { name: 'Save' }).click()
  await expect.poll(async () => (await read()).sleep).toBe('45m')
  await page.getByRole('button', { name: 'Fork' }).click()
  await page.getByRole('link', { name: 'Overview' }).click()
  await page.getByRole('link', { name: 'Show the tree' }).click()
  await page.getByRole('list', { name: 'Forks' }).getByText('with its memory').waitFor()
  await page.getByRole('navigation', { name: 'This unit' }).getByRole('link', { name: 'Activity' }).click()
  await page.getByText('changed the sleep of').first().waitFor()
  expect(faults).toEqual([])
  await context.close()
}, 120_000)
