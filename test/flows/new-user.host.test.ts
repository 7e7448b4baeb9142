// The first minutes of a person and a program with a new installation. The person signs in with a real browser, sets the
// program's limits, opens the page that it publishes and revokes it. The program follows the instructions it gets.

import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { AuditList } from '../../src/contract/audit.ts'
import { chromiumOptions } from '../support/chromium.ts'
import { eventually } from '../support/berth.ts'
import { newEra } from '../support/mcp.ts'
import { useBerth } from '../support/use-berth.ts'

const berth = useBerth()

let browser: Browser
let program: Server
let redirectUri: string
/** Query parameters that the browser delivered to the program's redirect URI. */
const answers: URLSearchParams[] = []

beforeAll(async () => {
  program = createServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://127.0.0.1')
    if (url.pathname === '/callback') answers.push(url.searchParams)
    response.end('You can close this window.')
  })
  await new Promise<void>((resolve) => program.listen(0, '127.0.0.1', resolve))
  redirectUri = `http://127.0.0.1:${(program.address() as AddressInfo).port}/callback`
  browser = await chromium.launch(chromiumOptions)
})
afterAll(async () => {
  await browser.close()
  program.closeAllConnections()
  await new Promise((resolve) => program.close(resolve))
})

/** If set, a directory for screenshots of each page. */
const pictures = process.env['BERTH_TEST_PICTURES']

async function picture(page: Page, name: string): Promise<void> {
  if (pictures === undefined) return
  for (const [width, height] of [
    [1100, 900],
    [380, 800],
  ] as const) {
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.setViewportSize({ width, height })
      await page.emulateMedia({ colorScheme })
      await page.screenshot({ path: `${pictures}/${name}-${width}-${colorScheme}.png`, fullPage: true })
    }
  }
}

type Kept = {
  client?: object
  tokens?: { access_token: string }
  found?: object
  verifier: string
  opened: URL[]
}

/** The program's OAuth provider, which stores its state in `kept`. */
function providerOf(kept: Kept) {
  return {
    redirectUrl: redirectUri,
    clientMetadata: { client_name: 'Claude Code', redirect_uris: [redirectUri] },
    state: () => 'the state',
    clientInformation: () => kept.client as never,
    saveClientInformation: (client: object) => void (kept.client = client),
    tokens: () => kept.tokens as never,
    saveTokens: (tokens: { access_token: string }) => void (kept.tokens = tokens),
    discoveryState: () => kept.found as never,
    saveDiscoveryState: (found: object) => void (kept.found = found),
    redirectToAuthorization: (url: URL) => void kept.opened.push(url),
    saveCodeVerifier: (verifier: string) => void (kept.verifier = verifier),
    codeVerifier: () => kept.verifier,
  }
}

it('a person connects a program, reads the page it publishes, and revokes it during a command', {
  timeout: 300_000,
}, async () => {
  const { baseUrl, signInUrl } = berth.credentials
  const page = await browser.newPage()
  const said: string[] = []
  page.on('console', (message) => said.push(message.text()))
  await page.goto(signInUrl)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.waitForURL(/\/t\/[^/]+\/units$/)
  await page.goto(`${baseUrl}/account`)
  expect(await page.textContent('body')).toContain(`claude mcp add --transport http berth ${baseUrl}/mcp`)
  await picture(page, 'account')

  // The program knows only the address of /mcp and opens the browser.
  const kept: Kept = { verifier: '', opened: [] }
  const first = new StreamableHTTPClientTransport(new URL(`${baseUrl}/mcp`), {
    authProvider: providerOf(kept),
  })
  const client = new Client({ name: 'claude-code', version: '2.1.330' })
  await expect(client.connect(first)).rejects.toThrow(/unauthorized/i)
  await page.goto(kept.opened[0]?.href ?? '')
  await page.getByText('Claude Code').first().waitFor()
  await picture(page, 'consent')
  await page.getByLabel('Units at once').fill('one')
  await page.getByRole('button', { name: 'Connect', exact: true }).click()
  await page.getByText('must be a whole number').waitFor()
  await picture(page, 'consent-refused')
  await page.getByLabel('Units at once').fill('1')
  await page.getByLabel('Euros a day').fill('0.10')
  await page.getByRole('button', { name: 'Connect', exact: true }).click()
  await page.waitForURL(/127\.0\.0\.1:\d+\/callback/)
  await first.finishAuth(answers[0] ?? new URLSearchParams())

  // It creates a unit and publishes a page, which someone without an account reads.
  const key = kept.tokens?.access_token ?? ''
  const session = await newEra({ baseUrl, key })
  const made = await session.call('create_unit', {
    name: 'site',
    image: 'berth.local/python:3.11',
    size: 'nano',
    cmd: ['python3', '-m', 'http.server', '8000', '--directory', '/srv'],
    ports: [8000],
    files: { '/srv/index.html': '<h1>Made by a program</h1>' },
    expose: 'public',
    wait_seconds: 240,
  })
  expect(made, made.text).toMatchObject({ isError: false })
  const { units } = made.structuredContent as { units: { urls: string[] }[] }
  const [url = ''] = units[0]?.urls ?? []
  // The certificate is from the installation's own CA, which this browser does not trust.
  const reader = await (await browser.newContext({ ignoreHTTPSErrors: true })).newPage()
  // The unit is running before its server listens.
  await eventually(async () => {
    await reader.goto(url)
    expect(await reader.textContent('h1')).toBe('Made by a program')
  })

  // A second unit exceeds the limit, and the error says what to do.
  const second = await session.call('create_unit', { name: 'more', image: 'berth.local/debian:12' })
  expect(second.isError).toBe(true)
  expect(second.text).toMatch(/^quota_exceeded: .*1.*\n.*tell them/)

  // The person revokes the program during a command.
  const working = session.call('run_command', {
    unit: 'site',
    command: 'echo begun; sleep 600',
    timeout_seconds: 600,
  })
  const auditOf = async () => (await berth.call<AuditList>('GET', '/v1/audit?limit=200')).body.events
  await page.goto(`${baseUrl}/account`)
  await page.getByText('Programs you have connected').waitFor()
  await picture(page, 'account-connected')
  await page.getByRole('button', { name: 'Revoke Claude Code' }).click()
  await page.getByText('Programs you have connected').waitFor({ state: 'detached' })
  const ended = await working.catch((error: Error) => ({ isError: true, text: error.message }))
  expect(ended).toMatchObject({ isError: true, text: expect.stringMatching(/unauthorized/i) })
  await expect(session.call('list_units')).rejects.toThrow()

  // The audit log contains everything it did with its name and version, and the command ended within seconds.
  const mine = async () =>
    (await auditOf()).filter(({ via, credential }) => via === 'mcp' && credential.kind === 'oauth')
  await eventually(async () =>
    expect((await mine()).map(({ action, status }) => `${action} ${status}`)).toEqual(
      expect.arrayContaining(['unit.create 201', 'unit.create 402', 'unit.exec 401']),
    ),
  )
  for (const row of await mine())
    expect(row).toMatchObject({
      agentName: 'codex',
      agentVersion: '0.169.0',
      credential: { name: 'Claude Code' },
    })
  const log = await auditOf()
  const revoked = log.find(({ action }) => action === 'agent.revoke')
  const exec = log.find(({ action, via }) => action === 'unit.exec' && via === 'mcp')
  expect(revoked).toMatchObject({ status: 200, via: 'dashboard' })
  const tookMs = Date.parse(exec?.at ?? '') + (exec?.durationMs ?? 0) - Date.parse(revoked?.at ?? '')
  expect(tookMs).toBeLessThan(5000)
  // The only message is the browser's own about the rejected form.
  expect(said).toEqual([expect.stringContaining('400 (Bad Request)')])
})
