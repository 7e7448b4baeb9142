// Reliability S7: the page of a hostile unit in a real browser attacks a signed-in person. It sets cookies for wider domains,
// frames pages of the service, submits its forms, and registers a service worker.

import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createSignInLink } from '../../src/domain/credentials/sign-in.ts'
import { signInUrl } from '../../src/domain/credentials/sign-in-url.ts'
import { chromiumOptions } from '../support/chromium.ts'
import { DOMAIN, type Origin, startGateway, startOrigin, type TestGateway } from '../support/gateway.ts'
import { makeTeam, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

const COOKIES = 300

let service: Service
let gateway: TestGateway
let origin: Origin
let browser: Browser
/** URLs and cookies that units received. */
const seen: { url: string; cookie: string }[] = []
let hostile: string
let neighbour: string

beforeAll(async () => {
  service = await startService({})
  gateway = await startGateway()
  origin = await startOrigin((asked, response) => {
    seen.push({ url: asked.url ?? '', cookie: asked.headers.cookie ?? '' })
    if (asked.url === '/worker.js')
      return void response
        .writeHead(200, { 'content-type': 'text/javascript', 'service-worker-allowed': '/' })
        .end('self.onfetch = (event) => event.respondWith(new Response("taken over"))')
    const wider = [DOMAIN, `.${DOMAIN}`, 'localhost', 'berth.test'].flatMap((domain) =>
      ['session', '__Host-session', 'theme'].map((name) => `${name}=planted; Domain=${domain}; Path=/`),
    )
    const many = Array.from({ length: COOKIES }, (_, n) => `many-${n}=x; Domain=${DOMAIN}; Path=/`)
    response
      .writeHead(200, { 'content-type': 'text/html', 'set-cookie': [...wider, ...many, 'own=1; Path=/'] })
      .end('<title>A unit</title><body></body>')
  })
  hostile = `http://${gateway.expose(origin.port)}`
  neighbour = `http://${gateway.expose(origin.port)}`
  browser = await chromium.launch({
    ...chromiumOptions,
    args: [
      ...chromiumOptions.args,
      `--host-resolver-rules=MAP berth.test 127.0.0.1:${service.port},MAP *.${DOMAIN} 127.0.0.1:${gateway.port}`,
    ],
  })
})
afterAll(async () => {
  await browser.close()
  await gateway.close()
  await origin.close()
  await service.close()
})

/** Signs a person in and opens the hostile unit's page. */
async function meet(): Promise<{ team: TestTeam; session: string; context: BrowserContext; page: Page }> {
  const team = await makeTeam(service)
  const { token } = await createSignInLink(service.app, team.email)
  const context = await browser.newContext()
  const page = await context.newPage()
  await page.goto(signInUrl('http://berth.test', token))
  await page.click('button')
  await page.waitForURL('http://berth.test/')
  const [cookie] = await context.cookies('http://berth.test')
  const session = cookie?.value ?? ''
  expect(session).not.toBe('')
  expect(await accountOf(page)).toContain(team.email)
  seen.length = 0
  await page.goto(hostile)
  expect(await page.title()).toBe('A unit')
  return { team, session, context, page }
}

async function accountOf(page: Page): Promise<string> {
  await page.goto('http://berth.test/account')
  return (await page.textContent('body')) ?? ''
}

it('a hostile page cannot set cookies for a wider domain, however many it sends', async () => {
  const { team, context, page } = await meet()
  const kept = await context.cookies([hostile, neighbour, `http://${DOMAIN}`, 'http://berth.test'])
  const planted = kept.filter(({ value }) => value === 'planted' || value === 'x')
  expect(planted).toEqual([])
  expect(kept.map(({ name }) => name)).toContain('own')
  seen.length = 0
  await page.goto(neighbour)
  expect(seen.find(({ url }) => url === '/')?.cookie).toBe('')
  expect(await accountOf(page)).toContain(team.email)
})

it('a hostile page can neither frame the service nor use or see the session', async () => {
  const { team, session, page } = await meet()
  const keys = async () => await service.call('GET', '/v1/keys', { key: team.key })
  const before = (await keys()).body
  await page.evaluate(`(async () => {
    const frame = document.createElement('iframe')
    frame.src = 'http://berth.test/account'
    const loaded = new Promise((resolve) => (frame.onload = resolve))
    document.body.append(frame)
    await loaded
    const body = JSON.stringify({ name: 'planted' })
    for (const [mode, type] of [['no-cors', 'text/plain'], ['cors', 'application/json']]) {
      const headers = { 'content-type': type }
      const sent = { method: 'POST', credentials: 'include', mode, headers, body }
      await fetch('http://berth.test/v1/keys', sent).catch(() => {})
    }
  })()`)
  const framed = page.frames().filter((frame) => frame !== page.mainFrame())
  expect(framed.map((frame) => frame.url())).toEqual(['chrome-error://chromewebdata/'])
  expect((await keys()).body).toEqual(before)
  expect(seen.filter(({ cookie }) => cookie.includes(session))).toEqual([])
  expect(await accountOf(page)).toContain(team.email)
})

it('a form of a hostile page cannot sign the person out', async () => {
  const { team, page } = await meet()
  await page.evaluate(`
    const form = document.createElement('form')
    form.method = 'post'
    form.action = 'http://berth.test/sign-out'
    document.body.append(form)
    form.submit()`)
  await page.waitForURL('http://berth.test/sign-out')
  expect(await accountOf(page)).toContain(team.email)
})

it('a service worker of a hostile page only affects its own origin', async () => {
  const { team, page } = await meet()
  await page.evaluate(`navigator.serviceWorker
    .register('/worker.js', { scope: '/' })
    .then(() => navigator.serviceWorker.ready)
    .then(() => true)`)
  await page.goto(hostile)
  expect(await page.textContent('body')).toBe('taken over')
  await page.goto(neighbour)
  expect(await page.title()).toBe('A unit')
  expect(await accountOf(page)).toContain(team.email)
})
