// The headers that pass between a caller and a port of a unit. Pure. The gateway sets and drops those of every visit
// (gateway/http/request-head.ts, response-head.ts); here it is what is ours: credentials, and our origin.

import type { IncomingMessage } from 'node:http'
import type { PortTarget } from './target.ts'

/** Credentials of ours, and what is about this connection. */
const keptFromUnit = new Set([
  'authorization',
  'connection',
  'cookie',
  'expect',
  'host',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** What would hold for all of our origin, or asks people for a password in its name. */
const keptFromCaller = new Set([
  'cache-control',
  'clear-site-data',
  'connection',
  'content-security-policy',
  'content-security-policy-report-only',
  'keep-alive',
  'link',
  'nel',
  'origin-agent-cluster',
  'public-key-pins',
  'refresh',
  'report-to',
  'reporting-endpoints',
  'service-worker-allowed',
  'set-cookie',
  'set-cookie2',
  'strict-transport-security',
  'transfer-encoding',
  'upgrade',
  'www-authenticate',
  'x-content-type-options',
  'x-request-id',
])
const ofOurOrigin = /^(?:access-control-|cross-origin-|x-berth-)/

/** Nothing of an answer runs, whatever shows it, and no store between keeps what a key has read. */
const ours = [
  'content-security-policy',
  "sandbox; default-src 'none'; frame-ancestors 'none'",
  'cache-control',
  'no-store',
  'x-content-type-options',
  'nosniff',
  // No unit can say so itself; other answers are the service's own.
  'x-berth-answer',
  'unit',
]

const BEARER_PROTOCOL = 'base64url.bearer.authorization.berth.'

/** The unit's server is asked for by the one name that every development server takes. */
export function headersForPort(request: IncomingMessage, { params }: PortTarget): string[] {
  const { rawHeaders } = request
  const headers = ['host', `localhost:${params.port}`]
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] ?? '').toLowerCase()
    const value = rawHeaders[at + 1] ?? ''
    if (keptFromUnit.has(name) || name.startsWith('x-berth-')) continue
    const passed = name === 'sec-websocket-protocol' ? withoutBearer(value) : value
    if (passed !== '' || value === '') headers.push(rawHeaders[at] ?? '', passed)
  }
  if (request.headers['transfer-encoding'] !== undefined) headers.push('transfer-encoding', 'chunked')
  return headers
}

/** Browsers can send a key in no other way (upgrades.ts). */
function withoutBearer(protocols: string): string {
  const offered = protocols.split(',').map((each) => each.trim())
  return offered.filter((each) => !each.startsWith(BEARER_PROTOCOL)).join(', ')
}

/** `host`: by which the caller reached this server. */
export function headersForCaller(rawHeaders: readonly string[], target: PortTarget, host: string): string[] {
  const headers: string[] = []
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] ?? '').toLowerCase()
    const value = rawHeaders[at + 1] ?? ''
    if (keptFromCaller.has(name) || ofOurOrigin.test(name)) continue
    const shown = name === 'location' ? locationAt(value, target, host) : value
    if (shown !== null) headers.push(rawHeaders[at] ?? '', shown)
  }
  return [...headers, ...ours]
}

/**
 * A place on the unit's server, or on this one, stays below the port: clients follow it with the caller's key. Null for what is no
 * place on the web. Any other host gets no key from them, since it is another origin.
 */
function locationAt(location: string, { prefix, target, params }: PortTarget, host: string): string | null {
  const own = `localhost:${params.port}`
  const base = `http://${own}`
  if (!URL.canParse(location, base + target)) return null
  const place = new URL(location, base + target)
  if (place.protocol !== 'http:' && place.protocol !== 'https:') return null
  const isOurs = place.host === own || place.host === new URL(`${place.protocol}//${host}`).host
  return isOurs ? prefix + place.pathname + place.search + place.hash : place.href
}
