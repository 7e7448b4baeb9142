// Sign-in with a real browser, which has its own rules for cookies, forms and redirects: with both identity providers and
// with a mailed link.

import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { chromiumOptions } from '../support/chromium.ts'
import { type Github, startGithub } from '../support/github.ts'
import { type OpenIdProvider, startOpenIdProvider } from '../support/openid.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let openId: OpenIdProvider
let github: Github
let browser: Browser

beforeAll(async () => {
  openId = await startOpenIdProvider('http://berth.test/sign-in/google')
  github = await startGithub()
  service = await startService({ signIn: { google: openId.client, github: github.client } })
  openId.people.set('7', { email: 'seven@example.test', email_verified: true })
  const emails = [{ email: 'eight@example.test', primary: true, verified: true }]
  github.people.set('7', { login: 'eight', name: null, emails })
  browser = await chromium.launch({
    ...chromiumOptions,
    args: [...chromiumOptions.args, `--host-resolver-rules=MAP berth.test 127.0.0.1:${service.port}`],
  })
})
afterAll(async () => {
  await browser.close()
  await service.close()
  await github.close()
  await openId.close()
})

/** Opens a new browser page for a person known to both identity providers. */
async function openPage(): Promise<Page> {
  return await browser.newPage({ extraHTTPHeaders: { 'x-person': '7' } })
}

it.each([
  ['Google', 'seven@example.test'],
  ['GitHub', 'eight@example.test'],
])('a person signs in with %s and signs out again', async (provider, email) => {
  const page = await openPage()
  await page.goto('http://berth.test/sign-in')
  await page.click(`text=Sign in with ${provider}`)
  await page.waitForURL('http://berth.test/')
  await page.goto('http://berth.test/account')
  expect(await page.textContent('body')).toContain(email)
  await page.click('text=Sign out')
  expect(await page.textContent('body')).toContain('not signed in')
})

it('a person requests a sign-in link by mail and signs in with it', async () => {
  const page = await openPage()
  await page.goto('http://berth.test/account')
  await page.click('text=Sign in')
  await page.fill('input[name=email]', 'ann@example.test')
  await page.click('text=Mail me a link')
  await page.waitForSelector('text=Look at your mail')
  const [mail] = await service.mailTo('ann@example.test')
  await page.goto(/http\S+token=\S+/.exec(mail?.text ?? '')?.[0] ?? '')
  await page.click('button')
  await page.waitForURL('http://berth.test/')
  await page.goto('http://berth.test/account')
  expect(await page.textContent('body')).toContain('ann@example.test')
})
