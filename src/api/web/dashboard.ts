// The dashboard's files, read into memory once: no path of a request ever reaches the disk. Files below /assets have
// the hash of their content in their name, and never change.

import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { builtDashboard } from './face.ts'
import type { FirstPage } from './first-view.ts'
import type { FirstViewParts } from './first-view-markup.ts'

type Encoding = 'br' | 'gzip'
type File = { type: string; whole: Buffer; packed: Partial<Record<Encoding, Buffer>> }

export type Dashboard = {
  /** Names this build: a page of another build is outdated. */
  build: string
  page: File
  pageTag: string
  pageHeaders: Record<string, string>
  /** What the server needs to put the first view into the page. */
  first: FirstPage
  /** By path, such as `/assets/index-D41kx.js`. */
  assets: ReadonlyMap<string, File>
}

const types: Record<string, string> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  svg: 'image/svg+xml',
  woff2: 'font/woff2',
}

const suffixes = { br: '.br', gzip: '.gz' } as const satisfies Record<Encoding, string>

/** `inline`: of the scripts and styles that are in the page itself. */
const headersWith = (inline: { scripts: string[]; styles: string[] }) => ({
  'cache-control': 'no-cache',
  'content-security-policy': [
    "default-src 'none'",
    ['script-src', "'self'", ...inline.scripts.map(policyDigest)].join(' '),
    ['style-src', "'self'", ...inline.styles.map(policyDigest)].join(' '),
    "font-src 'self'",
    "img-src 'self' data:",
    // What code in a unit shows as HTML, in a frame without any rights.
    'frame-src data:',
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ].join('; '),
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
})

const policyDigest = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** For what the first view reads: the page must not wait for what is slow. */
const PATIENCE_MS = 500

/** Returns null where none is built. */
export function readDashboard(directory = builtDashboard): Dashboard | null {
  try {
    const page = readAsset(directory, 'index.html')
    const text = page.whole.toString()
    const parts = JSON.parse(readFileSync(`${directory}/first-view.json`, 'utf8')) as FirstViewParts
    const scripts = [...text.matchAll(/<script>([^]*?)<\/script>/g)].map(([, script = '']) => script)
    const names = readdirSync(`${directory}/assets`).filter((name) => !/\.(br|gz)$/.test(name))
    return {
      build: readFileSync(`${directory}/stamp`, 'utf8'),
      page,
      first: { page: text, parts, patienceMs: PATIENCE_MS },
      pageHeaders: headersWith({ scripts, styles: [parts.sheet, parts.emptySheet] }),
      pageTag: `"${createHash('sha256').update(page.whole).digest('base64url').slice(0, 22)}"`,
      assets: new Map(names.map((name) => [`/assets/${name}`, readAsset(directory, `assets/${name}`)])),
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

function readAsset(directory: string, name: string): File {
  const packed: File['packed'] = {}
  for (const [encoding, suffix] of Object.entries(suffixes) as [Encoding, string][]) {
    try {
      packed[encoding] = readFileSync(`${directory}/${name}${suffix}`)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
  }
  const type = types[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream'
  return { type, whole: readFileSync(`${directory}/${name}`), packed }
}

/** Answers with the dashboard's one page, whatever the path: the browser reads it. */
export function sendDashboardPage(
  { page, pageTag, pageHeaders }: Dashboard,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  if (request.headers['if-none-match'] === pageTag) {
    response.writeHead(304, { ...pageHeaders, etag: pageTag }).end()
    return
  }
  sendFile(page, request, response, { ...pageHeaders, etag: pageTag })
}

/** Answers with the page that has its first view in it: it is one person's, of this moment. */
export async function sendFirstPage(
  { pageHeaders }: Dashboard,
  html: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const whole = Buffer.from(html)
  const encoding = encodingFor(request, () => true)
  const packed = encoding === undefined ? {} : { [encoding]: await pack[encoding](whole) }
  const own = { ...pageHeaders, 'cache-control': 'no-store' }
  sendFile({ type: types['html'] ?? '', whole, packed }, request, response, own)
}

/** As fast as the page is needed: it is packed for each request. */
const pack = {
  br: async (text: Buffer) =>
    await promisify(brotliCompress)(text, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }),
  gzip: async (text: Buffer) => await promisify(gzip)(text),
} as const satisfies Record<Encoding, (text: Buffer) => Promise<Buffer>>

/** Returns false where there is no such file. */
export function sendAsset(
  { assets }: Dashboard,
  request: IncomingMessage,
  response: ServerResponse,
): boolean {
  const [path = ''] = (request.url ?? '').split('?')
  const file = assets.get(path)
  if (!file) return false
  sendFile(file, request, response, { 'cache-control': 'public, max-age=31536000, immutable' })
  return true
}

function sendFile(
  { type, whole, packed }: File,
  request: IncomingMessage,
  response: ServerResponse,
  own: Record<string, string>,
): void {
  const encoding = encodingFor(request, (each) => packed[each] !== undefined)
  const body = (encoding && packed[encoding]) ?? whole
  response.writeHead(200, {
    ...own,
    'content-type': type,
    'content-length': body.length,
    ...(Object.keys(packed).length > 0 ? { vary: 'accept-encoding' } : {}),
    ...(encoding ? { 'content-encoding': encoding } : {}),
  })
  response.end(body)
}

function encodingFor(
  { headers }: IncomingMessage,
  isThere: (encoding: Encoding) => boolean,
): Encoding | undefined {
  const accepted = (headers['accept-encoding'] ?? '').toString()
  return (['br', 'gzip'] as const).find((each) => isThere(each) && accepts(accepted, each))
}

function accepts(header: string, encoding: Encoding): boolean {
  return header.split(',').some((each) => {
    const [name = '', ...parameters] = each.trim().split(';')
    return name.trim() === encoding && !parameters.some((parameter) => /^\s*q=0(\.0*)?$/.test(parameter))
  })
}
