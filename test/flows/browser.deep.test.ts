// The recipe `browser` in both classes: Playwright drives it by its URL, and from within the unit, and no page gets at it.

import { execFile } from 'node:child_process'
import { copyFile, mkdtemp, readFile, rm, symlink } from 'node:fs/promises'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Berth as Client, type Unit } from '../../packages/sdk/src/index.ts'
import { useBerth } from '../support/use-berth.ts'

const run = promisify(execFile)
const berth = useBerth(null)
const project = fileURLToPath(new URL('../..', import.meta.url))
const minutes = (count: number) => count * 60_000

/** With Playwright for Node, from a directory in which nothing is installed. */
const WITHIN = `
import { chromium } from 'playwright-core'
const browser = await chromium.connectOverCDP('http://127.0.0.1:9222')
const page = await browser.newPage()
await page.setContent('<title>from within</title><p>你好 😀')
console.log(await page.title(), (await page.screenshot()).subarray(1, 4).toString())
await browser.close()`

/** What a page that the browser shows would do: by a name of its own, and with its origin. */
const PAGE = `
set -u
curl -sS -o /dev/null -w '%{http_code} ' -H 'Host: evil.example:9222' http://127.0.0.1:9222/json/version
curl -sS -o /dev/null -w '%{http_code} ' -H 'Host: evil.example' -H 'X-Forwarded-Host: evil.example' "http://$(hostname -i | cut -d' ' -f1):9222/json/list"
curl -sS -o /dev/null -w '%{http_code} ' -H 'Origin: http://evil.example' http://127.0.0.1:9222/json/version
curl -sS -o /dev/null -w '%{http_code}' -H 'Origin: http://evil.example' -H 'Connection: Upgrade' -H 'Upgrade: websocket' -H 'Sec-WebSocket-Version: 13' -H 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==' http://127.0.0.1:9222/devtools/browser/x`

describe.each(['gvisor', 'runc'])('in class %s a browser', (isolation) => {
  let client: Client
  let unit: Unit
  let url: string
  let directory: string

  const visit = async (path: string): Promise<string> => {
    const ca = await readFile(berth.credentials.caFile ?? '')
    return await new Promise((resolve, reject) => {
      const asked = request(new URL(path, url), { ca }, (answer) => {
        let text = ''
        answer.setEncoding('utf8').on('data', (part: string) => (text += part))
        answer.once('end', () => resolve(text)).once('error', reject)
      })
      asked.once('error', reject).end()
    })
  }

  beforeAll(async () => {
    await berth.start({ BERTH_ISOLATION: isolation })
    const { baseUrl, apiKey } = berth.credentials
    client = new Client({ url: baseUrl, apiKey })
    const made = await client.recipes.run('browser', { expose: 'private', waitTimeoutMs: minutes(10) })
    unit = made.unit
    url = made.outputs.URL ?? ''
  }, minutes(12))

  afterAll(async () => await rm(directory, { recursive: true, force: true }))

  it('takes the picture of a page by the example', { timeout: minutes(3) }, async () => {
    const { baseUrl, apiKey, caFile } = berth.credentials
    directory = await mkdtemp(join(tmpdir(), 'berth-browser-'))
    await run('npm', ['install', `${baseUrl}/packages/berth-sdk.tgz`], { cwd: directory })
    await symlink(
      join(project, 'node_modules/playwright-core'),
      join(directory, 'node_modules/playwright-core'),
    )
    await copyFile(join(project, 'examples/browser/screenshot.ts'), join(directory, 'screenshot.ts'))
    const env = {
      ...process.env,
      BERTH_URL: baseUrl,
      BERTH_API_KEY: apiKey,
      NODE_EXTRA_CA_CERTS: caFile ?? '',
    }
    const page = 'data:text/html,<title>a harbour</title><h1>Berth</h1>'
    const asked = ['screenshot.ts', page, 'page.png']
    const { stdout } = await run(process.execPath, asked, { cwd: directory, env })
    expect(stdout).toBe('a harbour\n')
    expect((await readFile(join(directory, 'page.png'))).subarray(1, 4).toString()).toBe('PNG')
  })

  it('is driven by Playwright within the unit', async () => {
    await unit.files.write('/tmp/within.mjs', WITHIN)
    const { stdout, stderr, exitCode } = await unit.exec(['node', '/tmp/within.mjs'], {
      timeoutMs: minutes(1),
    })
    expect({ stdout, exitCode }, stderr).toEqual({ stdout: 'from within PNG\n', exitCode: 0 })
  })

  it('tells a client that comes by its URL the address to go on at', async () => {
    const text = await visit('/json/version')
    const { webSocketDebuggerUrl } = JSON.parse(text) as { webSocketDebuggerUrl: string }
    expect(webSocketDebuggerUrl).toMatch(new RegExp(`^wss://${new URL(url).host}/devtools/browser/`))
  })

  it('is not controlled by a page that it shows', async () => {
    const { stdout } = await unit.exec(['bash', '-c', PAGE])
    expect(stdout).toBe('403 403 403 403')
  })

  it('keeps its pages through a freeze', { timeout: minutes(3) }, async () => {
    const before = await visit('/json/version')
    await unit.sleep('10m', { now: true })
    expect(await visit('/json/version')).toBe(before)
  })
})
