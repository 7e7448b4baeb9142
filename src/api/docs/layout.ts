// The HTML around a page of the documentation: navigation, search, contents of the page. None of it needs scripts; one
// adds buttons that copy.

import { facePreload } from '../web/face.ts'
import { escapeHtml } from '../web/html.ts'
import { addressOf, contents, listed, markdownAddressOf, type Readers, readersOfPage } from './contents.ts'
import type { Heading } from './markdown.ts'
import { socialTags } from '../web/social.ts'
import { type Found, MAX_QUERY_LENGTH } from './search.ts'

export const docsHeaders = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-cache',
  'content-security-policy': [
    "default-src 'none'",
    "style-src 'self'",
    "font-src 'self'",
    "script-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ].join('; '),
  'referrer-policy': 'strict-origin',
}

export type Shown = {
  /** Of the page, null for one that is none of the documentation's. */
  path: string | null
  title: string
  html: string
  headings: readonly Heading[]
  /** What was searched for. */
  query?: string
  /** Null for a page that nobody links to. */
  publicUrl?: string | null
}

export function layout({ path, title, html, headings, query = '', publicUrl = null }: Shown): string {
  const whole = title === 'Berth' ? 'Berth documentation' : `${title} · Berth`
  const markdown =
    path === null ? '' : `<link rel="alternate" type="text/markdown" href="${markdownAddressOf(path)}">`
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${escapeHtml(whole)}</title>${markdown}${publicUrl === null ? '' : socialTags(publicUrl, whole)}${facePreload}<link rel="stylesheet" href="/docs/docs.css"><script src="/docs/copy.js" defer></script></head>
<body>
<a class="skip" href="#main">Skip to the text</a>
<header><a class="brand" href="/docs">Berth <span>docs</span></a>
<form role="search" action="/docs/search"><input type="search" name="q" value="${escapeHtml(query)}" aria-label="Search the documentation" placeholder="Search" maxlength="${MAX_QUERY_LENGTH}"><button>Search</button></form>
<a class="to-dashboard" href="/">Dashboard</a>
<a class="to-contents" href="#contents">Contents</a></header>
<div class="columns">
<main id="main" tabindex="-1"><article>
${html}</article>
${path === null ? '' : footer(path)}</main>
${onThisPage(headings)}<nav id="contents" aria-label="Documentation">${navigation(path)}</nav>
</div>
</body></html>
`
}

function navigation(path: string | null): string {
  const readers = readersOfPage(path)
  const others = contents.filter((section) => section.readers !== readers)
  const doors = [...new Map(others.map((section) => [section.readers, section])).values()]
    .map(({ readers: whose, pages: [first] }) =>
      first ? `<li>${linkTo(first.path, doorTitles[whose], false)}</li>` : '',
    )
    .join('')
  const own = contents
    .filter((section) => section.readers === readers)
    .map(({ title, pages }) => {
      const links = pages
        .map((page) => `<li>${linkTo(page.path, page.title, isWithin(path, page.path))}</li>`)
        .join('')
      return `<h2>${title}</h2><ul>${links}</ul>`
    })
  return [...own, `<h2>More</h2><ul>${doors}<li><a href="/">Dashboard</a></li></ul>`].join('\n')
}

const doorTitles: Record<Readers, string> = {
  users: 'Using Berth',
  operators: 'Operating a Berth',
  contributors: 'Contributing',
}

const linkTo = (path: string, title: string, isCurrent: boolean) =>
  `<a href="${addressOf(path)}"${isCurrent ? ' aria-current="page"' : ''}>${escapeHtml(title)}</a>`

/** A page that is not listed itself belongs to the one that its folder is named by. */
function isWithin(path: string | null, listedPath: string): boolean {
  if (path === null || path === listedPath) return path !== null
  if (listed.some((each) => each.path === path)) return false
  const [folder = ''] = path.split('/')
  return listedPath === folder || listedPath === `${folder}/README` || listedPath === folder.toUpperCase()
}

function onThisPage(headings: readonly Heading[]): string {
  const parts = headings.filter(({ depth }) => depth === 2)
  if (parts.length < 2) return ''
  const links = parts
    .map(({ text, anchor }) => `<li><a href="#${anchor}">${escapeHtml(text)}</a></li>`)
    .join('')
  return `<nav class="page" aria-label="On this page"><h2>On this page</h2><ul>${links}</ul></nav>\n`
}

function footer(path: string): string {
  const at = listed.findIndex((page) => page.path === path)
  const [before, after] = at < 0 ? [] : [listed[at - 1], listed[at + 1]]
  const links = [
    before
      ? `<a rel="prev" href="${addressOf(before.path)}">← ${escapeHtml(before.title)}</a>`
      : '<span></span>',
    after ? `<a rel="next" href="${addressOf(after.path)}">${escapeHtml(after.title)} →</a>` : '',
  ].join('')
  return `<footer><div class="turn">${links}</div><p><a href="${markdownAddressOf(path)}">This page as Markdown</a> · <a href="/llms.txt">llms.txt</a></p></footer>\n`
}

export function searchPage(query: string, found: readonly Found[]): string {
  const results = found
    .map(({ path, anchor, title, heading, excerpt }) => {
      const where = heading === title ? escapeHtml(title) : `${escapeHtml(title)}: ${escapeHtml(heading)}`
      return `<li><a href="${addressOf(path)}#${escapeHtml(anchor)}">${where}</a><p>${escapeHtml(excerpt)}</p></li>`
    })
    .join('\n')
  const said =
    query === ''
      ? 'Write what you look for above.'
      : found.length === 0
        ? `Nothing has all of these words: ${escapeHtml(query)}`
        : `${found.length === 1 ? 'One place' : `${found.length} places`} for ${escapeHtml(query)}`
  return layout({
    path: null,
    title: 'Search',
    html: `<h1>Search</h1><p role="status">${said}</p><ol class="found">${results}</ol>`,
    headings: [],
    query,
  })
}

export function missingPage(): string {
  const html = `<h1>There is no such page</h1><p>Search for it above, or begin at <a href="/docs">the first page</a>.</p>\n`
  return layout({ path: null, title: 'Not found', html, headings: [] })
}
