// The dashboard in a real browser, before a service with the engine in memory. It is watched: an error on its console, a
// thing that its policy refuses, a request to another host, a server's error or a jump of the layout fail the test.

import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { readDashboard } from '../../src/api/web/dashboard.ts'
import { chromiumOptions } from './chromium.ts'
import { makeSession, type TestTeam } from './make.ts'
import { type Service, type ServiceOptions, startService } from './service.ts'

const project = fileURLToPath(new URL('../..', import.meta.url))

export type Screen = 'wide' | 'narrow'

export const screens = {
  wide: { width: 1280, height: 800 },
  narrow: { width: 390, height: 800 },
} as const satisfies Record<Screen, { width: number; height: number }>

export type DashboardFixture = {
  service: Service
  browser: Browser
  /** A page of a person of this team, and what has been wrong with it so far. */
  open: (
    team: TestTeam,
    path?: string,
    options?: { screen?: Screen; theme?: 'light' | 'dark' },
  ) => Promise<{ page: Page; context: BrowserContext; faults: string[] }>
  close: () => Promise<void>
}

/** Long enough for any machine: tests compare what is in the first view. */
const PATIENCE_MS = 60_000

/** Builds the dashboard where it is not built from these sources yet. Its first view is waited for. */
export async function builtDashboard() {
  await promisify(execFile)(process.execPath, ['scripts/build-dashboard.ts'], { cwd: project })
  const dashboard = readDashboard()
  if (!dashboard) throw new Error('The dashboard could not be built.')
  return { ...dashboard, first: { ...dashboard.first, patienceMs: PATIENCE_MS } }
}

export async function startDashboard(options: ServiceOptions = {}): Promise<DashboardFixture> {
  const service = await startService({ ...options, dashboard: await builtDashboard() })
  const browser = await chromium.launch(chromiumOptions)
  return {
    service,
    browser,
    open: async (team, path = '/', { screen = 'wide', theme = 'light' } = {}) => {
      const context = await browser.newContext({ viewport: screens[screen], colorScheme: theme })
      const [name = '', value = ''] = (await makeSession(service, team)).split('=')
      await context.addCookies([{ name, value, url: service.baseUrl }])
      const page = await context.newPage()
      page.setDefaultTimeout(20_000)
      const faults = await watch(page, service.baseUrl)
      waitForDashboard(page)
      await page.goto(service.baseUrl + path)
      return { page, context, faults }
    },
    close: async () => {
      await browser.close()
      await service.close()
    },
  }
}

/** Pages that are left for another one, until that is there: what they were loading is cut off, and they may say so late. */
const changing = new WeakSet<Page>()
const CUT_OFF = 'This page could not be loaded.'

/** A page is there once the dashboard has drawn it: of what the server draws before, only the links work. */
function waitForDashboard(page: Page): void {
  const [goto, reload] = [page.goto.bind(page), page.reload.bind(page)]
  const untilDrawn = async (change: () => ReturnType<typeof reload>) => {
    changing.add(page)
    const answer = await change()
    await page.locator('#first').waitFor({ state: 'detached' })
    changing.delete(page)
    return answer
  }
  page.goto = async (...asked) => await untilDrawn(() => goto(...asked))
  page.reload = async (...asked) => await untilDrawn(() => reload(...asked))
}

/** The largest jump of a layout that nobody minds, of moves that follow each other within a second, as browsers count them. */
const JUMP = 0.02

/** Runs in the page, before its own scripts. */
const watching = `
  addEventListener('securitypolicyviolation', (event) =>
    berthFault('policy: ' + event.effectiveDirective + ' refuses ' + event.blockedURI + ' at ' + event.sourceFile))
  let [jumped, began, last] = [0, 0, 0]
  const what = []
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      if (entry.hadRecentInput) continue
      if (entry.startTime - last > 1000 || entry.startTime - began > 5000) {
        began = entry.startTime
        jumped = what.length = 0
      }
      last = entry.startTime
      jumped += entry.value
      for (const { node, previousRect, currentRect } of entry.sources)
        what.push((node?.className ?? 'text') + ' from ' + previousRect.y + ' to ' + currentRect.y)
    }
    if (jumped > ${JUMP}) berthFault('the layout jumped by ' + jumped.toFixed(3) + ': ' + what.join(', '))
  }).observe({ type: 'layout-shift', buffered: true })
`

async function watch(page: Page, origin: string): Promise<string[]> {
  const faults: string[] = []
  page.on('console', (message) => {
    // The browser says it of each answer that is an error; those of the server are looked at below.
    if (message.type() !== 'error' || (changing.has(page) && message.text().includes(CUT_OFF))) return
    if (!message.text().startsWith('Failed to load resource')) faults.push(`console: ${message.text()}`)
  })
  page.on('pageerror', (error) => faults.push(`uncaught: ${error.message}`))
  page.on('request', (request) => {
    const url = request.url()
    if (!url.startsWith(origin) && !/^(data|blob):/.test(url)) faults.push(`another origin: ${url}`)
  })
  page.on('response', (response) => {
    if (response.status() >= 500) faults.push(`${response.status()}: ${response.url()}`)
  })
  await page.exposeFunction('berthFault', (fault: string) => void faults.push(fault))
  await page.addInitScript({ content: watching })
  return faults
}
