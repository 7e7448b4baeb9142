// Parses the head of a visitor's request, and builds the head for the unit. Pure.
//
// Requests pass through Node's own strict parsers and are written again for the unit, so that both sides see the same
// request or none (reliability S17). What the parsers accept but two readers could understand differently is refused
// here.

import type { Origin } from '../peer.ts'

/** A request head of either version of HTTP, as Node provides it. */
export type RawHead = {
  httpVersionMajor: number
  httpVersionMinor: number
  method: string
  /** In HTTP/2 `:path`. */
  target: string
  /** Alternating names and values, as received; in HTTP/2 including `:authority` and the like. */
  rawHeaders: readonly string[]
}

export type RequestHead = {
  method: string
  /** A path and query in ASCII; or `*`, with OPTIONS only. */
  target: string
  /** As the visitor wrote it. */
  host: string
  /** What the unit is told instead; what it answers is still for the visitor's host alone. */
  hostForUnit?: string
  /** For the unit: alternating names and values, without those that the gateway sets. */
  headers: string[]
  /** Null if none was sent. */
  contentLength: string | null
  isChunked: boolean
  acceptsHtml: boolean
}

/** As Node shows them: bytes above 127, which many clients send as they are, are a character each. */
const ORIGIN_FORM = /^\/[\x21-\x7e\x80-\xff]*$/
const ABSOLUTE_FORM = /^https?:\/\/([^/?#]+)([/?][\x21-\x7e\x80-\xff]*)?$/i
const METHOD = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,32}$/

/** Hop-by-hop headers (RFC 9110, 7.6.1), and `proxy`, which CGI programs take for the proxy to use. */
const hopByHop = new Set([
  'connection',
  'expect',
  'http2-settings',
  'keep-alive',
  'proxy',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Returns null if the request is ambiguous. */
export function readHead(asked: RawHead): RequestHead | null {
  const { method, rawHeaders } = asked
  const target = readTarget(asked)
  if (!target || !METHOD.test(method)) return null
  const head: RequestHead = {
    method,
    target: percentEncode(target.target),
    host: '',
    headers: [],
    contentLength: null,
    isChunked: false,
    acceptsHtml: false,
  }
  const named = namedByConnection(rawHeaders)
  const hosts = target.authority === null ? [] : [target.authority]
  const cookies: string[] = []
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] ?? '').toLowerCase()
    const value = rawHeaders[at + 1] ?? ''
    if (name === 'host' || name === ':authority') hosts.push(value)
    else if (name.startsWith(':')) continue
    else if (name === 'cookie') cookies.push(value)
    else if (name === 'content-length') {
      if (head.contentLength !== null || !/^\d{1,16}$/.test(value)) return null
      head.contentLength = value
    } else if (name === 'transfer-encoding') {
      if (head.isChunked || value.toLowerCase() !== 'chunked' || asked.httpVersionMinor !== 1) return null
      head.isChunked = true
    } else if (isForUnit(name) && !named?.has(name)) {
      head.headers.push(rawHeaders[at] ?? '', value)
      if (name === 'accept') head.acceptsHtml ||= value.includes('text/html')
    }
  }
  // HTTP/2 may split a cookie header, which HTTP/1.1 must not.
  if (cookies.length > 0) head.headers.push('cookie', cookies.join('; '))
  if (head.isChunked && head.contentLength !== null) return null
  const host = oneHost(hosts, { mayBeTwice: target.authority !== null || asked.httpVersionMajor === 2 })
  return host === null ? null : { ...head, host }
}

/** Returns the whole head for the unit: the visitor's headers, and the gateway's headers about the visitor. */
export function headersForUnit(head: RequestHead, { address, proto }: Origin): string[] {
  const node = address.includes(':') ? `"[${address}]"` : address
  return [
    'host',
    head.hostForUnit ?? head.host,
    ...head.headers,
    'x-forwarded-for',
    address,
    'x-forwarded-host',
    head.host,
    'x-forwarded-proto',
    proto,
    'forwarded',
    `for=${node};host="${head.host}";proto=${proto}`,
  ]
}

/** Returns the trailers to pass on. Trailers that a reader could take for headers are dropped. */
export function trailersForOther(rawTrailers: readonly string[]): Record<string, string> {
  const trailers: Record<string, string> = {}
  for (let at = 0; at < rawTrailers.length; at += 2) {
    const name = (rawTrailers[at] ?? '').toLowerCase()
    if (!isForUnit(name) || notInTrailers.test(name)) continue
    const before = trailers[name]
    trailers[name] = `${before === undefined ? '' : `${before}, `}${rawTrailers[at + 1] ?? ''}`
  }
  return trailers
}

const notInTrailers =
  /^(?:host|authorization|cookie|set-cookie|location|alt-svc|cache-control|range|content-.*|if-.*|x-http-method.*|.*[^a-z0-9-].*|__proto__)$/

/**
 * Bytes above 127 have no place in a URL, and many servers refuse them. In this form every server reads the same path
 * (RFC 3987, 3.1). `text` has a character for each byte.
 */
export function percentEncode(text: string): string {
  return text.replace(/[\x80-\xff]/g, (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`)
}

/** The forms of RFC 9112, 3.2, without that of CONNECT. The unit gets a path, whichever form the visitor sent. */
function readTarget({
  httpVersionMajor,
  method,
  target,
}: RawHead): { target: string; authority: string | null } | null {
  if (ORIGIN_FORM.test(target)) return { target, authority: null }
  if (target === '*') return method === 'OPTIONS' ? { target, authority: null } : null
  const [, authority, path = ''] = ABSOLUTE_FORM.exec(target) ?? []
  if (authority === undefined || httpVersionMajor !== 1) return null
  if (path === '' && method === 'OPTIONS') return { target: '*', authority }
  return { target: path.startsWith('/') ? path : `/${path}`, authority }
}

/**
 * The host on which all readers agree. It may be sent twice, if both are the same: HTTP/2 has `:authority` beside
 * `host`, and an absolute URL names it beside `Host`.
 */
function oneHost([first, second, ...more]: string[], { mayBeTwice }: { mayBeTwice: boolean }): string | null {
  if (first === undefined || first === '' || more.length > 0) return null
  if (second === undefined) return first
  return mayBeTwice && second.toLowerCase() === first.toLowerCase() ? first : null
}

function isForUnit(name: string): boolean {
  return !hopByHop.has(name) && !isOurs(name)
}

/** Headers that only the gateway may set. Many servers treat `_` like `-`. */
function isOurs(name: string): boolean {
  if (name.startsWith('forwarded')) return name === 'forwarded'
  if (!name.startsWith('x')) return false
  const plain = name.replaceAll('_', '-')
  return plain === 'x-real-ip' || plain.startsWith('x-forwarded')
}

/** Headers named in `Connection` are hop-by-hop too. Null if it names none but the usual ones. */
function namedByConnection(rawHeaders: readonly string[]): Set<string> | null {
  let named: Set<string> | null = null
  for (let at = 0; at < rawHeaders.length; at += 2) {
    if (rawHeaders[at]?.length !== 'connection'.length) continue
    if (rawHeaders[at]?.toLowerCase() !== 'connection') continue
    for (const token of (rawHeaders[at + 1] ?? '').toLowerCase().split(',')) {
      const name = token.trim()
      if (name === '' || name === 'close' || hopByHop.has(name)) continue
      named ??= new Set()
      named.add(name)
    }
  }
  return named
}
