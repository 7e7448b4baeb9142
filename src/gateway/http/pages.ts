// The gateway's own responses: a page for people, a line of JSON for programs.

import { createHash } from 'node:crypto'
import { STATUS_CODES } from 'node:http'
import type { ErrorMessage } from '../sessions/outcomes.ts'

const style = `
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 36rem; margin: 15vh auto; padding: 0 1rem; }
  p + p { color: GrayText; }
  :root { color-scheme: light dark; }
`

/** Nothing may be loaded, run, framed or sent from these pages, and they are not cached. */
const securityHeaders = [
  'cache-control',
  'no-store',
  'content-security-policy',
  [
    "default-src 'none'",
    `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'referrer-policy',
  'no-referrer',
  'x-content-type-options',
  'nosniff',
]

export type Page = { status: number; headers: string[]; body: Buffer }

export function pageOf(said: ErrorMessage, { acceptsHtml }: { acceptsHtml: boolean }): Page {
  const body = Buffer.from(acceptsHtml ? html(said) : json(said))
  const headers = [
    'content-type',
    acceptsHtml ? 'text/html; charset=utf-8' : 'application/json; charset=utf-8',
    'content-length',
    String(body.length),
    ...securityHeaders,
  ]
  if (said.retryAfterS !== undefined) headers.push('retry-after', String(said.retryAfterS))
  return { status: said.status, headers, body }
}

/** The whole response, for a connection that is not a request of Node's, and is closed after it. */
export function writePage(said: ErrorMessage, { acceptsHtml }: { acceptsHtml: boolean }): Buffer {
  const { status, headers, body } = pageOf(said, { acceptsHtml })
  const head = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`, 'connection: close']
  for (let at = 0; at < headers.length; at += 2) head.push(`${headers[at]}: ${headers[at + 1]}`)
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1'), body])
}

function html({ title, text, advice, code, retryAfterS }: ErrorMessage): string {
  // The page reloads by itself for a person who waits for a unit.
  const again = code === 'waking' ? `<meta http-equiv="refresh" content="${retryAfterS}">` : ''
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width">${again}<title>${title}</title><style>${style}</style></head>
<body><h1>${title}</h1>
<p>${text}</p>
${advice === undefined ? '' : `<p>${advice}</p>\n`}</body></html>
`
}

function json({ code, text, advice }: ErrorMessage): string {
  const message = advice === undefined ? text : `${text} ${advice}`
  return `${JSON.stringify({ error: { code, message } })}\n`
}
