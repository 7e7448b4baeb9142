// The documentation as the server shows it: every page, every link, its policy, its search, and the files for
// programs.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { errorCodes } from '../../src/contract/errors.ts'
import { openSite, type Site } from '../../src/api/docs/site.ts'
import { type Service, startService } from '../support/service.ts'

type Page = { address: string; html: string; ids: Set<string>; links: string[] }

let service: Service
let site: Site
const pages = new Map<string, Page>()
beforeAll(async () => {
  service = await startService({ publicUrl: 'https://berth.example.org', apiHosts: ['127.0.0.1'] })
  site = await openSite('https://berth.example.org')
  for (const path of site.paths) {
    const address = path === '' ? '/docs' : `/docs/${path}`
    const { status, body } = await site.answer(address, new URLSearchParams())
    const html = String(body)
    expect(status, address).toBe(200)
    pages.set(address, {
      address,
      html,
      ids: new Set([...html.matchAll(/ id="([^"]+)"/g)].map(([, id = '']) => id)),
      links: [...html.matchAll(/<a[^>]* href="([^"]+)"/g)].map(([, href = '']) =>
        href.replaceAll('&#38;', '&'),
      ),
    })
  }
}, 120_000)
afterAll(async () => await service.close())

const page = (address: string): Page => {
  const found = pages.get(address)
  if (!found) throw new Error(`There is no page ${address}.`)
  return found
}

describe('the documentation pages', () => {
  it('have a title and a text each', () => {
    expect(pages.size).toBeGreaterThan(60)
    for (const { address, html } of pages.values()) {
      expect(html, address).toMatch(/<h1 id="[^"]+">\S/)
      expect(html.replaceAll(/<[^>]+>/g, '').length, address).toBeGreaterThan(800)
    }
  })

  it('have no broken links', () => {
    const others = ['/', '/v1/openapi.json', '/llms.txt', '/docs/search']
    const broken: string[] = []
    for (const { address, links } of pages.values()) {
      for (const link of links) {
        if (/^https?:/.test(link) || others.includes(link) || link.endsWith('.md')) continue
        const [path = '', anchor] = link.split('#')
        const target = pages.get(path === '' ? address : path)
        if (!target || (anchor !== undefined && !target.ids.has(anchor))) broken.push(`${address}: ${link}`)
      }
    }
    expect(broken).toEqual([])
  })

  it('can all be reached from the first page by links', () => {
    const seen = new Set(['/docs'])
    for (const address of seen)
      for (const link of page(address).links)
        if (pages.has(link.split('#')[0] ?? '')) seen.add(link.split('#')[0] ?? '')
    expect([...pages.keys()].filter((address) => !seen.has(address))).toEqual([])
  })

  it('have no duplicate id', () => {
    for (const { address, html } of pages.values()) {
      const ids = [...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)
      expect(new Set(ids).size, address).toBe(ids.length)
    }
  })

  it('have one script of their own, no inline style and nothing from another host', () => {
    for (const { address, html } of pages.values()) {
      expect(html.replace('<script src="/docs/copy.js" defer></script>', ''), address).not.toMatch(
        /<script|<style| style="| on\w+="|<iframe|<img/,
      )
      expect(
        [...html.matchAll(/<link[^>]* href="([^"]+)"/g)].every(([, href = '']) =>
          /^\/(?:docs\/|assets\/inter-)/.test(href),
        ),
      ).toBe(true)
    }
  })

  it('show the address of this installation in commands to copy, and keep documented loopback addresses', () => {
    expect(page('/docs/quick-start').html).toContain('https://berth.example.org/mcp')
    expect(page('/docs/connect').html).not.toMatch(/\bBASE\b/)
    expect(page('/docs/settings').html).toContain('127.0.0.1:7070')
  })

  it('explain every error code and every operation of the API', async () => {
    for (const code of errorCodes)
      expect(page('/docs/errors').html).toContain(`<td><code>${code}</code></td>`)
    const document = await service.call<{ paths: Record<string, Record<string, { summary: string }>> }>(
      'GET',
      '/v1/openapi.json',
    )
    const api = [...pages.values()].filter(({ address }) => address.startsWith('/docs/api/'))
    const all = api.map(({ html }) => html).join('')
    for (const [path, methods] of Object.entries(document.body.paths))
      for (const method of Object.keys(methods))
        expect(all).toContain(`<code>${method.toUpperCase()} ${path}</code>`)
  })
})

describe('the documentation over HTTP', () => {
  it('comes with a policy that allows no other origin, and is not sent again when unchanged', async () => {
    const answer = await service.fetch('GET', '/docs/quick-start')
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8')
    const policy = answer.headers.get('content-security-policy')
    expect(policy).toContain("default-src 'none'; style-src 'self'")
    expect(policy).not.toMatch(/unsafe|\*|https?:/)
    expect(await answer.text()).toBe(page('/docs/quick-start').html)
    const etag = answer.headers.get('etag') ?? ''
    const again = await service.fetch('GET', '/docs/quick-start', { headers: { 'if-none-match': etag } })
    expect([again.status, await again.text()]).toEqual([304, ''])
  })

  it('names a picture, by its whole address, that other sites show for a page and for signing in', async () => {
    for (const path of ['/docs/quick-start', '/sign-in']) {
      const page = await (await service.fetch('GET', path, { headers: { accept: 'text/html' } })).text()
      expect(page).toContain('<meta property="og:image" content="https://berth.example.org/docs/social.png">')
    }
    const picture = await service.fetch('GET', '/docs/social.png')
    expect([picture.status, picture.headers.get('content-type')]).toEqual([200, 'image/png'])
    const bytes = Buffer.from(await picture.arrayBuffer())
    expect([bytes.toString('latin1', 1, 4), bytes.readUInt32BE(16), bytes.readUInt32BE(20)]).toEqual([
      'PNG',
      1200,
      630,
    ])
  })

  it.each([
    ['/docs/docs.css', 'text/css', '--accent'],
    ['/docs/copy.js', 'text/javascript', 'clipboard'],
    ['/docs/index.md', 'text/markdown', '# Berth'],
    ['/docs/concepts/sleep.md', 'text/markdown', '# Sleep'],
    ['/docs/api/unit.md', 'text/markdown', 'POST /v1/units'],
    ['/llms.txt', 'text/plain', 'https://berth.example.org/docs/concepts/sleep.md'],
    ['/llms.txt', 'text/plain', 'begin with [run_code](https://berth.example.org/docs/guides/code.md)'],
    ['/llms-full.txt', 'text/plain', '# Quick start'],
  ])('serves %s as %s', async (path, type, text) => {
    const answer = await service.fetch('GET', path)
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, `${type}; charset=utf-8`])
    expect(await answer.text()).toContain(text)
    const head = await service.fetch('HEAD', path)
    expect([head.status, await head.text()]).toEqual([200, ''])
  })

  it.each([
    '/docs/nothing',
    '/docs/../package.json',
    '/docs/%2e%2e/package.json',
    '/docs/constructor',
    '/docs/quick-start.md.md',
  ])('answers 404 for %s', async (path) => {
    const answer = await service.fetch('GET', path)
    expect(answer.status).toBe(404)
    expect(await answer.text()).not.toContain('devDependencies')
  })
})

describe('the documentation search', () => {
  const search = async (query: string) => {
    const answer = await service.fetch('GET', `/docs/search?q=${encodeURIComponent(query)}`)
    expect(answer.status).toBe(200)
    return await answer.text()
  }

  it.each([
    ['what counts as use', '/docs/concepts/sleep#what-counts-as-use'],
    ['policy_violation', '/docs/errors#errors'],
    ['fork memory', '/docs/concepts/forks#'],
    ['idempotency-key', '/docs/concepts/units#calls-that-can-be-sent-twice'],
  ])('finds %j', async (query, address) => {
    const found = await search(query)
    expect(found).toContain(`href="${address}`)
  })

  it.each([
    ['install cli', '/docs/install'],
    ['certificate', '/docs/certificates'],
    ['web app', '/docs/guides/first-web-app'],
    ['not_listening', '/docs/troubleshooting'],
  ])('finds the guide first for %j', async (query, address) => {
    const [, first] = /<ol class="found"><li><a href="([^"#]+)/.exec(await search(query)) ?? []
    expect(first).toBe(address)
  })

  it('says when it finds nothing, and escapes the query', async () => {
    expect(await search('"><script>alert(1)</script>')).not.toContain('<script>')
    expect(await search('xyzzy plugh')).toContain('Nothing has all of these words: xyzzy plugh')
    expect(await search('')).toContain('Write what you look for above.')
    expect(await search('a '.repeat(1000))).toContain('<h1>Search</h1>')
  })
})
