// The documentation, read once from the program's files, with the first request; each page is rendered when it is
// first requested. The address of this installation replaces the one in the examples.

import { glob, readFile } from 'node:fs/promises'
import { setImmediate } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { addressOf, contents, listed, markdownAddressOf } from './contents.ts'
import { docsHeaders, layout, missingPage, searchPage } from './layout.ts'
import { faceRule } from '../web/face.ts'
import { socialPicture, socialPicturePath } from '../web/social.ts'
import { linkFrom, pathOfFile } from './links.ts'
import { passagesOf, type Rendered, renderMarkdown } from './markdown.ts'
import type { Document } from './reference/document.ts'
import { operationPages } from './reference/operations.ts'
import { recipesPage } from './reference/recipes.ts'
import { toolsPage } from './reference/tools.ts'
import { createIndex, type Index, type Searchable } from './search.ts'

const project = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '')

/** As they stand in the examples of the files. */
const EXAMPLE_ADDRESS = /http:\/\/127\.0\.0\.1:7070|\bBASE\b/g

const own = new Set(
  contents.filter(({ fillsAddress }) => !fillsAddress).flatMap(({ pages }) => pages.map(({ path }) => path)),
)

export type DocsAnswer = { status: number; headers: Record<string, string>; body: string | Uint8Array }

export type Site = {
  answer(path: string, query: URLSearchParams): Promise<DocsAnswer>
  /** Of every page, in the order of the navigation, then by path. */
  paths: readonly string[]
}

type Source = { file: string; markdown: string }

export async function openSite(publicUrl: string): Promise<Site> {
  // A test compares the file with the routes; generating it takes far longer than reading it.
  const document = JSON.parse(await readFile(`${project}/openapi.json`, 'utf8')) as Document
  const sources = await readSources(publicUrl, document)
  const styles = ['../web/tokens.css', './docs.css'].map(
    async (name) => await readFile(new URL(name, import.meta.url), 'utf8'),
  )
  const stylesheet = [faceRule, ...(await Promise.all(styles))].join('\n')
  const copyScript = await readFile(new URL('./copy.js', import.meta.url), 'utf8')
  const rendered = new Map<string, Rendered>()
  const render = (path: string, { file, markdown }: Source): Rendered => {
    const kept = rendered.get(path) ?? renderMarkdown(markdown, (href) => linkFrom(file, href))
    rendered.set(path, kept)
    return kept
  }
  let index: Promise<Index> | null = null
  return {
    paths: [...sources.keys()],
    answer: async (address, query) => {
      if (address === '/llms.txt') return text('text/plain', llmsIndex(publicUrl, sources))
      if (address === '/llms-full.txt') return text('text/plain', llmsWhole(publicUrl, sources))
      if (address === '/docs/docs.css') return text('text/css', stylesheet)
      if (address === '/docs/copy.js') return text('text/javascript', copyScript)
      if (address === socialPicturePath) {
        const headers = {
          ...docsHeaders,
          'content-type': 'image/png',
          'cache-control': 'public, max-age=86400',
        }
        return { status: 200, headers, body: await socialPicture() }
      }
      if (address === '/docs/search') {
        const asked = (query.get('q') ?? '').trim()
        index ??= readIndex(sources)
        return html(200, searchPage(asked, (await index).find(asked)))
      }
      const [, path = '', wantsMarkdown] = /^\/docs(?:\/(?:index(?=\.md)|(.*?))(\.md)?)?$/.exec(address) ?? []
      const source = sources.get(path)
      if (source === undefined) return html(404, missingPage())
      if (wantsMarkdown !== undefined) return text('text/markdown', source.markdown)
      const page = render(path, source)
      return html(200, layout({ path, ...page, publicUrl }))
    },
  }
}

async function readSources(publicUrl: string, document: Document): Promise<Map<string, Source>> {
  const written = new Map([
    ...operationPages(document),
    ['tools', toolsPage(document)] as const,
    ['recipes', recipesPage()] as const,
  ])
  const files: string[] = []
  for await (const file of glob('docs/**/*.md', { cwd: project })) files.push(file)
  const unlisted = files
    .sort()
    .map((file) => ({ file, path: pathOfFile(file) ?? '' }))
    .filter(({ path }) => !listed.some((page) => page.path === path))
  const all = [
    ...listed,
    ...unlisted,
    ...[...written.keys()].map((path) => ({ path, file: `docs/${path}.md` })),
  ]
  const read = all.map(async ({ path, file }): Promise<[string, Source]> => {
    const markdown = written.get(path) ?? (await readFile(`${project}/${file}`, 'utf8'))
    const fills = !own.has(path) && (written.has(path) || !/^(?:decisions|architecture)\//.test(path))
    return [path, { file, markdown: fills ? markdown.replaceAll(EXAMPLE_ADDRESS, publicUrl) : markdown }]
  })
  return new Map(await Promise.all(read))
}

/** One page after the other, so that other calls are answered in between. */
async function readIndex(sources: ReadonlyMap<string, Source>): Promise<Index> {
  const passages: Searchable[] = []
  for (const [path, { markdown }] of sources) {
    const found = passagesOf(markdown)
    const title = found[0]?.heading ?? path
    passages.push(...found.map((passage) => ({ path, title, ...passage })))
    await setImmediate()
  }
  return createIndex(passages)
}

function llmsIndex(publicUrl: string, sources: ReadonlyMap<string, Source>): string {
  return [
    '# Berth',
    '',
    '> Container units for AI agents: they sleep when unused, wake on the next call or visit, and can be forked with their memory. A REST API with MCP tools, a CLI and SDKs.',
    '',
    `The API is at ${publicUrl}/v1, MCP at ${publicUrl}/mcp. Every page is Markdown at its address with .md; all of them are in [llms-full.txt](${publicUrl}/llms-full.txt).`,
    '',
    `To run code and see its values, tables and plots, begin with [run_code](${publicUrl}${markdownAddressOf('guides/code')}), which keeps variables between calls; a shell, files and ports are beside it.`,
    '',
    ...contents.flatMap(({ title, pages }) => [
      `## ${title}`,
      '',
      ...pages
        .filter(({ path }) => sources.has(path))
        .map((page) => `- [${page.title}](${publicUrl}${markdownAddressOf(page.path)})`),
      '',
    ]),
  ].join('\n')
}

/** What a program that uses Berth needs to know: all but what is for operators and contributors. */
function llmsWhole(publicUrl: string, sources: ReadonlyMap<string, Source>): string {
  return [...sources]
    .filter(([path]) => !own.has(path) && !/^(?:decisions|architecture)\//.test(path))
    .map(([path, { markdown }]) => `<!-- ${publicUrl}${addressOf(path)} -->\n\n${markdown.trim()}\n`)
    .join('\n')
}

const html = (status: number, body: string): DocsAnswer => ({ status, headers: docsHeaders, body })

function text(type: string, body: string): DocsAnswer {
  const { 'content-security-policy': policy, 'cache-control': cache } = docsHeaders
  const headers = {
    'content-type': `${type}; charset=utf-8`,
    'cache-control': cache,
    'content-security-policy': policy,
  }
  return { status: 200, headers, body }
}
