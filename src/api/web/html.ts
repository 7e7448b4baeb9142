// The few pages the server itself shows. They have no script, no style and no typeface from elsewhere, and pages of
// another origin cannot frame them or post to them.

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { facePreload, faceRule } from './face.ts'
import { harbour, logo } from './harbour.ts'

/** The stylesheet of all pages: one file, which a browser fetches once for each version. */
export const stylesheet = [
  faceRule,
  ...['tokens.css', 'pages.css'].map((name) => readFileSync(new URL(name, import.meta.url), 'utf8')),
].join('\n')

export const stylesheetPath = '/pages.css'
const stylesheetUrl = `${stylesheetPath}?${createHash('sha256').update(stylesheet).digest('hex').slice(0, 12)}`

export const pageHeaders = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'content-security-policy': [
    "default-src 'none'",
    "style-src 'self'",
    "font-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  // A path can contain a one-time token, so only the origin is sent; forms need it to prove where they come from.
  'referrer-policy': 'strict-origin',
}

/**
 * Returns a whole page around trusted markup; escape everything else with `escapeHtml` first. `goTo` is a URL that
 * the browser opens by itself; `wide` is for pages with more than a question; `head` is trusted
 * markup too.
 */
export function htmlPage(
  title: string,
  markup: string,
  { goTo = null, wide = false, head = '' }: { goTo?: string | null; wide?: boolean; head?: string } = {},
): string {
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width">${goTo === null ? '' : `<meta http-equiv="refresh" content="0; url=${escapeHtml(goTo)}">`}<meta name="color-scheme" content="light dark"><title>${escapeHtml(title)}</title>${head}${facePreload}<link rel="stylesheet" href="${stylesheetUrl}"></head>
<body${wide ? ' class="wide"' : ''}>${wide ? '' : harbour}<header class="brand">${logo}Berth</header>
<main><h1>${escapeHtml(title)}</h1>
${markup}
</main></body></html>
`
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

/** The title of a page for those who are. */
export const NOT_SIGNED_IN = 'You are not signed in'
