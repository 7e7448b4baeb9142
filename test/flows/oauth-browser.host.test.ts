// OAuth consent with a real browser, which has its own rules for cookies, redirects and forms: from the authorization URL via
// sign-in and consent back to the program's redirect URI.

import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Browser, chromium } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { chromiumOptions } from '../support/chromium.ts'
import { builtDashboard } from '../support/dashboard.ts'
import { makeTeam } from '../support/make.ts'
import { authorizePath, newPkce, redeem, registerClient } from '../support/oauth.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let browser: Browser
let program: Server
let redirectUri: string
/** Query parameters that the browser delivered to the program's redirect URI. */
const answers: URLSearchParams[] = []

beforeAll(async () => {
  service = await startService({ dashboard: await builtDashboard() })
  program = createServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://127.0.0.1')
    if (url.pathname === '/callback') answers.push(url.searchParams)
    response.end('You can close this window.')
  })
  await new Promise<void>((resolve) => program.listen(0, '127.0.0.1', resolve))
  redirectUri = `http://127.0.0.1:${(program.address() as AddressInfo).port}/callback`
  browser = await chromium.launch({
    ...chromiumOptions,
    args: [...chromiumOptions.args, `--host-resolver-rules=MAP berth.test 127.0.0.1:${service.port}`],
  })
})
afterAll(async () => {
  await browser.close()
  program.closeAllConnections()
  await new Promise((resolve) => program.close(resolve))
  await service.close()
})

it('a person signs in and sets limits for a program, which then has exactly these limits', async () => {
  const team = await makeTeam(service)
  const client = await registerClient(service, { name: 'Claude Code', redirectUri })
  const { verifier, challenge } = newPkce()
  const page = await browser.newPage()
  const scripts: string[] = []
  page.on('console', (message) => scripts.push(message.text()))
  await page.goto(`http://berth.test${authorizePath(client, challenge)}`)
  await page.waitForURL('http://berth.test/sign-in')
  await page.fill('input[name=email]', team.email)
  await page.click('text=Mail me a link')
  await page.waitForSelector('text=Look at your mail')
  const [mail] = await service.mailTo(team.email)
  await page.goto(/http\S+token=\S+/.exec(mail?.text ?? '')?.[0] ?? '')
  await page.click('button')
  await page.waitForSelector('text=Connect a program?')
  expect(await page.textContent('dl')).toContain('Claude Code')
  expect(await page.textContent('dl')).toContain('a program on this computer (127.0.0.1)')
  await page.getByLabel('Units at once').fill('1')
  await page.getByLabel('Euros a day').fill('0.10')
  await page.getByLabel('medium').uncheck()
  await page.getByLabel('What its units may reach').selectOption('only the hosts listed here')
  await page.getByLabel('Hosts to list').fill('api.github.com\npreset:npm')
  await page.getByLabel('Units of the team', { exact: true }).selectOption('the units of its own stack')
  await page.getByRole('button', { name: 'Connect', exact: true }).click()
  await page.waitForURL(/127\.0\.0\.1:\d+\/callback/)
  const code = answers[0]?.get('code') ?? ''
  expect(Object.fromEntries(answers[0] ?? [])).toMatchObject({ state: 'the state', iss: 'http://berth.test' })
  const { body } = await redeem(service, client, { code, verifier })
  const as = { key: body.access_token }
  const { body: listed } = await service.call<{ agents: unknown[] }>('GET', '/v1/agents', as)
  const egress = { mode: 'listed', allow: ['api.github.com', 'preset:npm'], siblings: 'stack' }
  const policy = { maxConcurrentUnits: 1, dailySpendCapCents: 10, allowedSizes: ['nano', 'small'], egress }
  expect(listed.agents).toContainEqual(
    expect.objectContaining({ kind: 'oauth', policy: expect.objectContaining(policy) }),
  )
  // No script or content security error.
  expect(scripts).toEqual([])
})
