// `npm run bench:dashboard`: the dashboard in Chromium before a server with a Postgres of its own and the engine in memory:
// first paint, scrolling 10,000 units, an event on the screen, a terminal's echo, twenty open tabs, and the size of the
// first page. Parts can be named: `npm run bench:dashboard -- paint echo`. Everything runs on the one machine, so other work on it adds to every figure but the sizes.

import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type BrowserContext, type CDPSession, chromium, type Page } from 'playwright-core'
import { loadConfig } from '../src/config.ts'
import { createSignInLink, signIn } from '../src/domain/credentials/sign-in.ts'
import { systemClock } from '../src/lib/clock.ts'
import { createServiceClock } from '../src/lib/service-clock.ts'
import { readManifest } from '../scripts/dashboard-budget.ts'
import { chromiumOptions } from '../test/support/chromium.ts'
import { startScratchService } from '../test/support/scratch-service.ts'
import { percentile, timed } from './figures.ts'
import { fillTeam } from './filled-team.ts'
import { pageScripts } from './page-scripts.ts'

const UNITS = 10_000
const LOADS = 10
const FRAMES = 300
const EVENTS = 60
const KEYS = 100
const TABS = 20

/** What Lighthouse calls a slow 4G: 1.6 Mbit a second down, 0.75 up, 150 ms there and back. */
const slowNetwork = {
  offline: false,
  latency: 150,
  downloadThroughput: (1.6 * 1e6) / 8,
  uploadThroughput: (0.75 * 1e6) / 8,
}

const chosen = process.argv.slice(2)

await import('../scripts/build-dashboard.ts')
const { db, teamId, key, server, stop } = await startScratchService('bench')
const browser = await chromium.launch(chromiumOptions)
const call = async (method: string, path: string, body?: unknown) => {
  const headers = { authorization: `Bearer ${key.secret}`, 'content-type': 'application/json' }
  const init = body === undefined ? {} : { body: JSON.stringify(body) }
  const response = await fetch(server.baseUrl + path, { method, headers, ...init })
  if (!response.ok) throw new Error(`${method} ${path}: ${await response.text()}`)
  return (await response.json()) as { units: { id: string }[] }
}
try {
  const units = await unitsPath()
  const spec = { name: 'seen', image: 'berth.local/debian:12', sleep: 'never' }
  const made = await call('POST', '/v1/units', { spec })
  const id = made.units[0]?.id ?? ''
  const parts = {
    sizes: measureSizes,
    paint: async () => await measureFirstPaint(units),
    events: async () => await measureEvents(units, id),
    echo: async () => {
      await measureServerEcho(id)
      await measureEcho(`${units}/${id}/terminal`)
    },
    tabs: async () => await measureTabs(units, id),
    // Last, for it fills the team.
    scrolling: async () => await measureScrolling(units),
  }
  for (const [part, measure] of Object.entries(parts))
    if (chosen.length === 0 || chosen.includes(part)) await measure()
} finally {
  await browser.close()
  await stop()
}

/** A context of a browser of its own, signed in. */
async function signedIn(): Promise<BrowserContext> {
  const clock = createServiceClock(systemClock)
  const link = await createSignInLink({ db, clock }, 'bench@example.test')
  const { token } = await signIn({ db, clock, config: loadConfig({}) }, link.token)
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
  await context.addCookies([{ name: 'berth_session', value: token, url: server.baseUrl }])
  await context.addInitScript({ content: pageScripts.watch })
  return context
}

async function unitsPath(): Promise<string> {
  const context = await signedIn()
  const page = await context.newPage()
  await page.goto(`${server.baseUrl}/t`)
  await page.waitForURL(/\/units$/)
  await context.close()
  return page.url()
}

async function measureSizes(): Promise<void> {
  const dist = fileURLToPath(new URL('../packages/dashboard/dist', import.meta.url))
  const { firstScript, firstStyle, fonts } = await readManifest(dist)
  const [kB, built] = [(bytes: number) => (bytes / 1000).toFixed(1), readFileSync(`${dist}/stamp`, 'utf8')]
  console.log(
    `first page, build ${built}: script ${kB(firstScript)} kB gzipped, style ${kB(firstStyle)}, fonts ${kB(fonts)}`,
  )
}

/** Nothing is cached before it, but where `isKnown`: the files of a browser that was here before. */
async function measureFirstPaint(units: string): Promise<void> {
  const cases = [
    { rate: 1, isSlow: false, isKnown: false },
    { rate: 4, isSlow: false, isKnown: false },
    { rate: 4, isSlow: true, isKnown: false },
    { rate: 4, isSlow: true, isKnown: true },
  ]
  for (const { rate, isSlow, isKnown } of cases) {
    const [paints, drawn, busy, shifts]: [number[], number[], number[], number[]] = [[], [], [], []]
    for (let load = 0; load < LOADS; load += 1) {
      const context = await signedIn()
      const page = await context.newPage()
      const tools = await context.newCDPSession(page)
      if (isKnown) {
        await page.goto(units)
        await page.getByRole('row', { name: /seen/ }).waitFor()
      }
      await tools.send('Emulation.setCPUThrottlingRate', { rate })
      await tools.send('Network.enable')
      if (isSlow) await tools.send('Network.emulateNetworkConditions', slowNetwork)
      const spent = await threadTimes(tools)
      await page.goto(units, { waitUntil: 'commit' })
      drawn.push((await page.evaluate('berthBench.drawn()')) as number)
      await page.waitForTimeout(500)
      paints.push((await page.evaluate('berthBench.paint')) as number)
      shifts.push((await page.evaluate('berthBench.shift')) as number)
      busy.push((await spent()).TaskDuration ?? 0)
      await context.close()
    }
    const how = `processor slowed ${rate} times${isSlow ? ', 1.6 Mbit' : ''}${isKnown ? ', files known' : ''}`
    show(`largest contentful paint, ${how}`, paints)
    show('the same, until the list is the script’s own and takes keys', drawn)
    show('the same, processor time of the main thread until half a second later', busy)
    console.log(`the same, layout shift: at most ${Math.max(...shifts).toFixed(4)}`)
  }
}

/** Processor time of the page's main thread, by what it was spent on: other work on the machine does not add to it. */
async function threadTimes(tools: CDPSession): Promise<() => Promise<Record<string, number>>> {
  await tools.send('Performance.enable', { timeDomain: 'threadTicks' })
  return async () => {
    const { metrics } = await tools.send('Performance.getMetrics')
    return Object.fromEntries(metrics.map(({ name, value }) => [name, value * 1000]))
  }
}

/** From before the call is sent, and from its answer, to the frame that shows what it changed. */
async function measureEvents(units: string, id: string): Promise<void> {
  const context = await signedIn()
  const page = await livePage(context, units)
  const [sinceSent, sinceAnswered]: [number[], number[]] = [[], []]
  for (let event = 0; event < EVENTS; event += 1) {
    const state = event % 2 === 0 ? 'stopped' : 'running'
    const sent = Date.now()
    const [at, answered] = await Promise.all([
      page.evaluate(`berthBench.shown('[data-at]', 'seen', '${state}')`) as Promise<number>,
      call('POST', `/v1/units/${id}/${state === 'stopped' ? 'stop' : 'start'}`).then(() => Date.now()),
    ])
    sinceSent.push(at - sent)
    sinceAnswered.push(Math.max(0, at - answered))
    await page.waitForTimeout(150)
  }
  show('a change on the screen, since its call was sent', sinceSent)
  show('the same, since the call was answered', sinceAnswered)
  await context.close()
}

/** The server's part of an echo: the same socket without a browser. */
async function measureServerEcho(id: string): Promise<void> {
  const url = `${server.baseUrl.replace(/^http/, 'ws')}/v1/units/${id}/exec?tty=1&cols=80&rows=24`
  const headers = { authorization: `Bearer ${key.secret}` }
  const socket = new WebSocket(url, { protocols: ['berth.v1'], headers })
  const heard = async () =>
    await new Promise((resolve) => socket.addEventListener('message', resolve, { once: true }))
  // Its prompt.
  await heard()
  const waits: number[] = []
  for (let at = 0; at < KEYS; at += 1) {
    const letter = 97 + (at % 8)
    await timed(waits, async () => {
      socket.send(Uint8Array.of(0, letter))
      await heard()
    })
    await new Promise((resolve) => setTimeout(resolve, 30))
  }
  socket.close()
  show('echo of a key, without a browser', waits)
}

/** The engine in memory echoes at once, so all of it is what server and page add to the engine's own echo. */
async function measureEcho(terminal: string): Promise<void> {
  const context = await signedIn()
  const page = await context.newPage()
  await page.goto(terminal)
  await page.getByText('Connected.').waitFor()
  const [told, drawn]: [number[], number[]] = [[], []]
  for (let at = 0; at < KEYS; at += 1) {
    await page.evaluate('void (berthBench.echo = berthBench.echoed())')
    await page.keyboard.press('abcdefgh'[at % 8] ?? 'a')
    const { message, shown } = (await page.evaluate('berthBench.echo')) as { message: number; shown: number }
    told.push(message)
    drawn.push(shown)
    await page.waitForTimeout(30)
  }
  show('echo of a key, until its bytes are back in the page', told)
  show('the same, until it is in the terminal on the page', drawn)
  await context.close()
}

async function measureTabs(units: string, id: string): Promise<void> {
  const context = await signedIn()
  let streams = 0
  context.on('request', (request) => {
    if (new URL(request.url()).pathname === '/v1/events') streams += 1
  })
  const pages: Page[] = []
  for (let tab = 0; tab < TABS; tab += 1) pages.push(await livePage(context, units))
  const waits: number[] = []
  const changed = async (state: string, verb: string) => {
    const all = pages.map((page) => page.evaluate(`berthBench.shown('[data-at]', 'seen', '${state}')`))
    await timed(waits, async () => await Promise.all([...all, call('POST', `/v1/units/${id}/${verb}`)]))
  }
  await changed('stopped', 'stop')
  console.log(`${TABS} tabs, streams ${streams}; all show a change after ${waits[0]?.toFixed(0)} ms`)
  const [leader] = pages.splice(0, 1)
  await leader?.close()
  await pages[0]?.waitForTimeout(3000)
  await changed('running', 'start')
  console.log(
    `the one with the stream closed, streams ${streams}; all others show the next after ${waits[1]?.toFixed(0)} ms`,
  )
  await context.close()
}

async function measureScrolling(units: string): Promise<void> {
  await fillTeam(db, { teamId, units: UNITS, audit: 0, keyIds: [key.id] })
  const context = await signedIn()
  const page = await livePage(context, units)
  await page.getByText(new RegExp(`^${(UNITS + 1).toLocaleString('en')} ·`)).waitFor({ timeout: 120_000 })
  const spent = await threadTimes(await context.newCDPSession(page))
  for (const step of [40, 120]) {
    const before = await spent()
    await page.evaluate(`berthBench.scroll(${FRAMES}, ${step})`)
    const after = await spent()
    const parts = ['ScriptDuration', 'LayoutDuration', 'RecalcStyleDuration'].map(
      (name) =>
        `${name.replace('Duration', '')} ${(((after[name] ?? 0) - (before[name] ?? 0)) / FRAMES).toFixed(2)}`,
    )
    console.log(`${UNITS} units, ${step} px a frame, ms of the main thread a frame: ${parts.join(', ')}`)
  }
  await context.close()
}

async function livePage(context: BrowserContext, units: string): Promise<Page> {
  const page = await context.newPage()
  page.setDefaultTimeout(60_000)
  await page.goto(units)
  await page.getByText('live', { exact: true }).waitFor()
  await page
    .getByRole('row', { name: /seen|unit-/ })
    .first()
    .waitFor()
  return page
}

function show(what: string, samples: number[]): void {
  const [least, p50, p95] = [Math.min(...samples), percentile(samples, 0.5), percentile(samples, 0.95)]
  console.log(`${what}: least ${least.toFixed(0)} ms, p50 ${p50.toFixed(0)} ms, p95 ${p95.toFixed(0)} ms`)
}
