// A person makes a real PostgreSQL from its recipe in the dashboard, forks it, changes the copy with psql in a terminal, and
// compares both in two terminals side by side. `npm test` has the same journey with an engine in memory (test/dashboard/journeys.test.ts).

import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, it } from 'vitest'
import { destroyAll, listUnits } from '../support/berth-units.ts'
import { chromiumOptions } from '../support/chromium.ts'
import { isDeep } from '../support/part-of.ts'
import { useBerth } from '../support/use-berth.ts'

const berth = useBerth()
const PATIENT_MS = 120_000
const PSQL = 'psql -qAt -U "$POSTGRES_USER" -d "$POSTGRES_DB" -c'

let browser: Browser
let context: BrowserContext
let page: Page

beforeAll(async () => {
  browser = await chromium.launch(chromiumOptions)
  context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
  page = await context.newPage()
  page.setDefaultTimeout(PATIENT_MS)
  await page.goto(berth.credentials.signInUrl)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.waitForURL(/\/t\/[^/]+\/units$/)
})
afterAll(async () => {
  await browser.close()
  await destroyAll(berth)
})

it.runIf(isDeep)(
  'a person forks a database and compares it with its copy by psql in two terminals',
  {
    timeout: 3 * PATIENT_MS,
  },
  async () => {
    const units = page.url()
    await page.getByRole('link', { name: 'Recipes' }).click()
    await page.getByRole('link', { name: 'PostgreSQL 15' }).click()
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByText('DATABASE_URL').first().waitFor()
    const [source] = await listUnits(berth)
    const first = await openTerminal(page, `${units}/${source?.id}`)
    await first.type(
      `${PSQL} "create table prices (what text, cents int)" -c "insert into prices values ('tea', 250)"`,
    )
    await first.shows(`${PSQL} "select what || ' costs ' || cents from prices"`, 'tea costs 250')

    await page.goto(`${units}/${source?.id}`)
    await page.getByRole('button', { name: 'Fork' }).click()
    await page.getByText('is copied as').first().waitFor()
    const copy = (await listUnits(berth)).find(({ forkedFrom }) => forkedFrom === source?.id)
    const other = await context.newPage()
    other.setDefaultTimeout(PATIENT_MS)
    const [left, right] = [
      await openTerminal(page, `${units}/${source?.id}`),
      await openTerminal(other, `${units}/${copy?.id}`),
    ]
    const select = `${PSQL} "select what || ' is ' || cents from prices"`
    await right.shows(select, 'tea is 250')
    await right.type(`${PSQL} "update prices set cents = 199"`)
    await right.shows(select, 'tea is 199')
    await left.shows(select, 'tea is 250')
  },
)

async function openTerminal(tab: Page, unit: string) {
  await tab.goto(unit)
  await tab.getByRole('navigation', { name: 'This unit' }).getByRole('link', { name: 'Terminal' }).click()
  await tab.getByText('Connected.', { exact: true }).waitFor()
  const type = async (line: string) => {
    await tab.bringToFront()
    await tab.locator('.xterm-helper-textarea').focus()
    await tab.keyboard.type(`${line}\n`)
  }
  return {
    type,
    /** Types a command, and waits for a row that is exactly this. */
    shows: async (line: string, row: string) => {
      await type(line)
      await tab.locator('.xterm-rows').getByText(row, { exact: true }).last().waitFor()
    },
  }
}
