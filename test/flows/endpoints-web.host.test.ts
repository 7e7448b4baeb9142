// The private URL of a real unit, opened by a browser (which must not reveal the secret), curl and git, and a download that
// is larger than the gateway may buffer.

import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Berth as Sdk } from '../../packages/sdk/src/index.ts'
import type { BrowserContext } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/berth.ts'
import { hibernate, freeze, FROZEN_FOR_S, type Published, publish, waking } from '../support/published.ts'
import { useBerth } from '../support/use-berth.ts'
import {
  clone,
  download,
  type Files,
  hashOfLarge,
  makeRepository,
  memoryDuring,
  openBrowser,
} from '../support/visitors.ts'

const run = promisify(execFile)

const berth = useBerth({ BERTH_FROZEN_FOR: `${FROZEN_FOR_S}s` })
let caFile: string
/** The clients' home directory, with the files that they fetch. */
let home: string
let site: Published
/** Another origin that the page links to. */
let elsewhere: Published

beforeAll(async () => {
  home = await mkdtemp('/var/tmp/berth-visitor-')
  caFile = berth.credentials.caFile ?? ''
  elsewhere = await publishSite('elsewhere', 'public', {})
  site = await publishSite('site', 'private', {
    ...pages(elsewhere.url),
    ...(await makeRepository(home, 'cloned\n')),
  })
})
afterAll(async () => {
  await rm(home, { recursive: true })
})

async function publishSite(name: string, mode: 'public' | 'private', files: Files): Promise<Published> {
  const program = await readFile(new URL('../support/servers/web.py', import.meta.url), 'utf8')
  const spec = {
    name,
    image: 'berth.local/python:3.11',
    cmd: ['python3', '/srv/server.py'],
    files: { '/srv/server.py': program, '/srv/site/index.html': `the page of ${name}`, ...files },
    env: { PORT: '8000' },
    ports: [8000],
  }
  const published = await publish(berth, spec, { port: 8000, protocol: 'http', mode })
  await eventually(async () => expect(await curl(`${published.url}/`)).toBe(`the page of ${name}`))
  return published
}

/** Relative links only, except those to the other origin. */
function pages(other: string): Files {
  const page = (title: string, body: string) =>
    `<!doctype html><meta charset=utf-8><link rel=icon href=data:,><title>${title}</title>${body}`
  const first = `
    <a href="../deep/second.html">on</a> <a id=out href="${other}/seen">out</a>
    <img src="dot.svg"> <img src="${other}/beacon.svg">
    <script>
      const socket = new WebSocket(new URL('socket', location.href.replace(/^http/, 'ws')))
      socket.onopen = () => socket.send('over')
      socket.onmessage = ({ data }) => document.body.append('It says: ' + data)
    </script>`
  return {
    '/srv/site/deep/first.html': page('first', first),
    '/srv/site/deep/second.html': page('second', '<a href="first.html">back</a>'),
    '/srv/site/deep/dot.svg': '<svg xmlns="http://www.w3.org/2000/svg" width="3" height="3"/>',
  }
}

async function curl(url: string, ...args: string[]): Promise<string> {
  return (await run('curl', ['--silent', '--fail', '--cacert', caFile, ...args, url])).stdout
}

describe('a private URL', () => {
  it.each(['frozen', 'cold'] as const)('works with curl, with its unit %s', async (tier) => {
    if (tier === 'frozen') await freeze(berth, site.unit)
    else await hibernate(berth, [site.unit])
    expect(await waking(berth, site.unit, tier, () => curl(`${site.url}/`))).toBe('the page of site')
    await freeze(berth, site.unit)
    const byHttp2 = () => curl(`${site.url}/`, '--http2', '--write-out', ' by %{http_version}')
    expect(await waking(berth, site.unit, 'frozen', byHttp2)).toBe('the page of site by 2')
  })

  it('works with git clone', async () => {
    await freeze(berth, site.unit)
    const cloned = await waking(berth, site.unit, 'frozen', () =>
      clone(site.url, join(home, 'clone'), caFile),
    )
    expect(cloned).toBe('cloned\n')
  })
})

describe('a port at the address of the API', () => {
  it.each(['frozen', 'cold'] as const)('answers programs with a key, with its unit %s', async (tier) => {
    const unit = await new Sdk({
      url: berth.credentials.baseUrl,
      apiKey: berth.credentials.apiKey,
    }).units.get(site.unit.id)
    if (tier === 'frozen') await freeze(berth, site.unit)
    else await hibernate(berth, [site.unit])
    const fetched = await waking(berth, site.unit, tier, async () => await (await unit.fetch(8000)).text())
    expect(fetched).toBe('the page of site')
    await expect(unit.fetch(8001)).rejects.toMatchObject({ code: 'provider_error', status: 502 })
  })
})

describe('a private URL in a browser (reliability S20)', () => {
  let browser: BrowserContext

  beforeAll(async () => {
    browser = await openBrowser(home, caFile)
  })
  afterAll(async () => await browser?.close())

  it('works with relative links, a reload and a WebSocket, and wakes its unit', async () => {
    await freeze(berth, site.unit)
    const page = await browser.newPage()
    const failed: string[] = []
    page.on('response', (response) => {
      if (response.status() >= 400 && !response.url().includes('beacon')) failed.push(response.url())
    })
    await waking(berth, site.unit, 'frozen', () => page.goto(`${site.url}/deep/first.html`))
    const spoken = () => page.getByText('It says: overover').waitFor()
    await spoken()
    await page.reload()
    await spoken()
    await page.getByText('on', { exact: true }).click()
    await page.waitForURL(`${site.url}/deep/second.html`)
    await page.getByText('back').click()
    await page.waitForURL(`${site.url}/deep/first.html`)
    await spoken()
    expect(failed).toEqual([])
    await page.close()
  })

  it('is not revealed to another origin by embedded images or links', async () => {
    const page = await browser.newPage()
    await page.goto(`${site.url}/deep/first.html`)
    await page.locator('#out').click()
    await page.waitForURL(`${elsewhere.url}/seen`)
    const seen = async (at: Published) => (await curl(`${at.url}/seen`)).split('\n')
    // The image, the link and the request for this list.
    expect((await seen(elsewhere)).length).toBeGreaterThanOrEqual(4)
    expect((await seen(elsewhere)).join()).not.toContain(site.host)
    // Control: the page does send its URL to its own server.
    expect(await seen(site)).toContain(`${site.url}/deep/first.html`)
    await page.close()
  })
})

describe('a download that is larger than the gateway may buffer', () => {
  const MEGABYTES = 512

  it('arrives unchanged without growing the gateway’s memory', async () => {
    const ca = await readFile(caFile, 'utf8')
    const pid = (await berth.pidOf('gateway')) ?? 0
    const { before, most } = await memoryDuring(pid, async () => {
      expect(await download(site.url, MEGABYTES, ca)).toBe(hashOfLarge(MEGABYTES))
    })
    expect(most - before).toBeLessThan(128 * 2 ** 20)
  })
})
