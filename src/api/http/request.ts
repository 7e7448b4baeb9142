// Reads the headers of an HTTP request that operations need. No header is trusted unchecked.

import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import type { Presented } from '../../domain/credentials/authenticate.ts'
import { newId } from '../../lib/ids.ts'
import { readCookie } from './cookies.ts'

/** Keeps the caller's own id if it cannot break a header or a log line (spec 7), else makes a new one. */
export function requestIdOf(request: Pick<IncomingMessage, 'headers'>): string {
  const own = request.headers['x-request-id']
  return typeof own === 'string' && /^[\x21-\x7e]{1,128}$/.test(own) ? own : newId('request')
}

/** What an operation needs to know about the sender of a request. */
export function senderOf(request: IncomingMessage, publicUrl: string) {
  const { headers } = request
  return {
    presented: presentedBy(headers, publicUrl),
    userAgent: userAgentOf(headers),
    fromOwnPages: isFromOwnPages(request, publicUrl),
    wantsStream: acceptsStream(headers),
    lastEventId: lastEventIdOf(headers),
    stripeSignature: oneOf(headers['stripe-signature']),
    idempotencyKey: idempotencyKeyOf(request),
  }
}

/**
 * The address of the client of a request that the framework has not taken: behind trusted proxies, the last forwarded one
 * that is no proxy.
 */
export function peerBehind(request: IncomingMessage, isProxy: (address: string) => boolean): string {
  const forwarded = [request.headers['x-forwarded-for'] ?? []].flat().join(',').split(',')
  let peer = request.socket.remoteAddress ?? ''
  for (const each of forwarded.toReversed()) {
    const address = each.trim()
    if (!isProxy(peer) || isIP(address) === 0) break
    peer = address
  }
  return peer
}

export function presentedBy(headers: IncomingHttpHeaders, publicUrl: string): Presented {
  return {
    authorization: headers.authorization ?? null,
    sessionToken: readCookie(headers.cookie, 'session', publicUrl),
    team: oneOf(headers['x-berth-team']),
    userAgent: userAgentOf(headers),
  }
}

/**
 * Whether a browser sends this from one of our own pages. Browsers name the page's origin on every request that is
 * unsafe or crosses origins, and no page can forge it; cookies alone prove nothing. A page that a unit serves can be
 * on our site, and is not one of ours.
 */
export function isFromOwnPages({ method, headers }: IncomingMessage, publicUrl: string): boolean {
  const isRead = method === 'GET' || method === 'HEAD'
  const site = headers['sec-fetch-site']
  if (site === 'cross-site' || site === 'same-site') {
    return isRead && headers['sec-fetch-mode'] === 'navigate'
  }
  if (headers.origin === undefined) return isRead
  return originsOf(headers.host, publicUrl).includes(headers.origin)
}

/**
 * The origins of our own pages, as browsers write them: scheme, host and port. A browser that reaches this server by another of its
 * names uses the same scheme, except that localhost and addresses lead past the proxy that speaks TLS.
 */
function originsOf(host: string | undefined, publicUrl: string): string[] {
  const { origin, protocol } = new URL(publicUrl)
  const at = (scheme: string) => (URL.canParse(`${scheme}//${host}`) ? [new URL(`${scheme}//${host}`)] : [])
  const direct = at('http:').filter(({ hostname }) => hostname === 'localhost' || isIP(bare(hostname)) !== 0)
  return [origin, ...[...at(protocol), ...direct].map((url) => url.origin)]
}

const bare = (hostname: string) => hostname.replace(/^\[|\]$/g, '')

function acceptsStream(headers: IncomingHttpHeaders): boolean {
  return (headers.accept ?? '').toLowerCase().includes('text/event-stream')
}

/** Printable and limited in length, because it is stored and shown to people. */
function userAgentOf(headers: IncomingHttpHeaders): string | null {
  const kept = (headers['user-agent'] ?? '').replace(/[^\x20-\x7e]/g, '').slice(0, 300)
  return kept === '' ? null : kept
}

function lastEventIdOf(headers: IncomingHttpHeaders): string | null {
  const id = headers['last-event-id']
  return typeof id === 'string' && id !== '' ? id : null
}

function oneOf(value: string | string[] | undefined): string | null {
  return typeof value === 'string' ? value : null
}

/** If the header is sent twice, its schema gets both values and refuses them. */
function idempotencyKeyOf({ headersDistinct }: IncomingMessage): unknown {
  const values = headersDistinct['idempotency-key'] ?? []
  return values.length > 1 ? values : (values[0] ?? null)
}

/** If the query has a field twice, its schema gets both values and refuses them. */
export function queryOf(url: string): Record<string, string | string[]> {
  const fields = new URLSearchParams(url.includes('?') ? url.slice(url.indexOf('?') + 1) : '')
  const values = Map.groupBy(fields, ([name]) => name)
  return Object.fromEntries(
    [...values].map(([name, pairs]) => {
      const given = pairs.map(([, value]) => value)
      return [name, given.length === 1 ? (given[0] ?? '') : given]
    }),
  )
}
