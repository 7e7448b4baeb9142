// The Code tab of a unit: what code gave is shown, and nothing of it runs in the page (reliability S24).

import { afterAll, beforeAll, expect, it } from 'vitest'
import { type DashboardFixture, startDashboard } from '../support/dashboard.ts'
import { makeTeam, makeUnit } from '../support/make.ts'

/** One dark pixel. */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='
const HOSTILE =
  '<p id="said">harmless</p><script>top.document.title = "taken"; document.title = "ran"</script>'

let dashboard: DashboardFixture
/** What the interpreter of the unit says. */
let says: object[] = []
/** Each request that it got. */
let asked: { op: string; code?: string; language?: string }[] = []

beforeAll(async () => {
  dashboard = await startDashboard()
  dashboard.service.engine.onExec(({ argv, stdin }) => {
    if (!argv[0]?.endsWith('/client')) return null
    const request = JSON.parse(String(stdin)) as (typeof asked)[number]
    asked.push(request)
    const context = {
      id: 'ctx_1',
      language: 'python',
      cwd: '/',
      state: 'idle',
      createdAt: '2026-11-28T11:00:00Z',
    }
    const events =
      request.op === 'run'
        ? [
            { type: 'begin', context: 'ctx_1', language: 'python' },
            ...says,
            { type: 'end', end: 'done', count: 1, context: 'ctx_1' },
          ]
        : [{ type: 'end', ...(request.op === 'list' ? { contexts: [context] } : { context }) }]
    return { exitCode: 0, stdout: events.map((event) => `${JSON.stringify(event)}\n`).join('') }
  })
}, 240_000)
afterAll(async () => await dashboard.close())

async function openCode(image = 'berth.local/code:1') {
  const team = await makeTeam(dashboard.service)
  const unit = await makeUnit(dashboard.service, team, { image })
  const { page, context, faults } = await dashboard.open(team, '/t')
  await page.waitForURL(/\/units$/)
  await page.goto(`${page.url()}/${unit.id}`)
  asked = []
  return { page, context, faults }
}

it('shows what code printed, its table, its plot and its error, one below the other', async () => {
  const { page, context, faults } = await openCode()
  await page.getByRole('link', { name: 'Code', exact: true }).click()
  const table = {
    schema: { fields: [{ name: 'index' }, { name: 'harbour' }] },
    data: [{ index: 0, harbour: 'Rotterdam' }],
    rows: 2500,
  }
  says = [
    { type: 'stdout', text: 'printed\n' },
    { type: 'result', main: false, data: { 'image/png': PNG, 'text/plain': 'a plot' } },
    {
      type: 'result',
      main: true,
      data: { 'application/vnd.dataresource+json': table, 'text/plain': 'frame' },
    },
  ]
  await page.getByRole('textbox', { name: 'Code' }).fill('first\nsecond')
  await page.keyboard.press('Shift+Enter')
  await page.getByText('printed').waitFor()
  await page.getByRole('cell', { name: 'Rotterdam' }).waitFor()
  await page.getByText('The first 1 of 2500 rows.').waitFor()
  const width = async () =>
    await page
      .getByRole('img', { name: 'a plot' })
      .evaluate((image) => (image as unknown as { naturalWidth: number }).naturalWidth)
  await expect.poll(width).toBe(1)
  expect(asked).toMatchObject([{ op: 'run', code: 'first\nsecond', language: 'python' }])

  says = [
    {
      type: 'error',
      name: 'ZeroDivisionError',
      value: 'division by zero',
      traceback: ['line 1', 'ZeroDivisionError: division by zero'],
    },
  ]
  await page.getByRole('radio', { name: 'bash' }).check({ force: true })
  await page.getByRole('textbox', { name: 'Code' }).fill('1 / 0')
  await page.getByRole('button', { name: 'Run', exact: true }).click()
  await page.getByText('ZeroDivisionError: division by zero').waitFor()
  await page.getByText('printed').waitFor()
  expect(asked.at(-1)).toMatchObject({ language: 'bash' })
  expect(faults).toEqual([])
  await context.close()
}, 120_000)

it('shows HTML in a frame in which no script runs', async () => {
  const { page, context } = await openCode()
  await page.goto(`${page.url()}/code`)
  says = [{ type: 'result', main: true, data: { 'text/html': HOSTILE, 'text/plain': 'a widget' } }]
  await page.getByRole('textbox', { name: 'Code' }).fill('show()')
  await page.getByRole('button', { name: 'Run', exact: true }).click()
  const frame = page.getByTitle('a widget')
  await frame.contentFrame().getByText('harmless').waitFor()
  expect(await frame.getAttribute('sandbox')).toBe('')
  const inside = page.frames().find((each) => each.url().startsWith('data:text/html'))
  expect(await inside?.title()).toBe('')
  expect(await page.title()).not.toBe('taken')
  await context.close()
}, 120_000)

it('begins without variables when its language is restarted', async () => {
  const { page, context, faults } = await openCode()
  await page.goto(`${page.url()}/code`)
  await page.getByRole('button', { name: 'Restart python' }).click()
  await page.getByText('It begins without variables.').waitFor()
  expect(asked.map(({ op }) => op)).toEqual(['list', 'restart'])
  expect(faults).toEqual([])
  await context.close()
}, 120_000)

it('is there for units of the image for code alone', async () => {
  const { page, context } = await openCode('berth.local/debian:12')
  await page.getByRole('link', { name: 'Logs', exact: true }).waitFor()
  expect(await page.getByRole('link', { name: 'Code', exact: true }).count()).toBe(0)
  await context.close()
}, 120_000)
