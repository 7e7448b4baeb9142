// The dashboard's files, read into memory once: no path of a request ever reaches the disk. Files below /assets have
// the hash of their content in their name, and never change.

import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { fileURLToPath } from 'node:url'

/** Made by scripts/build-dashboard.ts. */
const builtDashboard = fileURLToPath(new URL('../../../packages/dashboard/dist', import.meta.url))

type Encoding = 'br' | 'gzip'
type File = { type: string; whole: Buffer; packed: Partial<Record<Encoding, Buffer>> }

export type Dashboard = {
  /** Names this build: a page of another build is outdated. */
  build: string
  page: File
  pageTag: string
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

const pageHeaders = {
  'cache-control': 'no-cache',
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
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
}

/** Returns null where none is built. */
export function readDashboard(directory = builtDashboard): Dashboard | null {
  try {
    const page = readAsset(directory, 'index.html')
    const names = readdirSync(`${directory}/assets`).filter((name) => !/\.(br|gz)$/.test(name))
    return {
      build: readFileSync(`${directory}/stamp`, 'utf8'),
      page,
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
  { page, pageTag }: Dashboard,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  if (request.headers['if-none-match'] === pageTag) {
    response.writeHead(304, { ...pageHeaders, etag: pageTag }).end()
    return
  }
  sendFile(page, request, response, { ...pageHeaders, etag: pageTag })
}

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
  { headers }: IncomingMessage,
  response: ServerResponse,
  own: Record<string, string>,
): void {
  const accepted = (headers['accept-encoding'] ?? '').toString()
  const encoding = (['br', 'gzip'] as const).find((each) => packed[each] && accepts(accepted, each))
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

function accepts(header: string, encoding: Encoding): boolean {
  return header.split(',').some((each) => {
    const [name = '', ...parameters] = each.trim().split(';')
    return name.trim() === encoding && !parameters.some((parameter) => /^\s*q=0(\.0*)?$/.test(parameter))
  })
}
