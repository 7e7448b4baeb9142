// A request and its response, in HTTP/1.1 or HTTP/2: Node's own objects, as far as they are alike.

import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest } from 'node:http2'
import type { Duplex, Writable } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { arrivalOf, isSecure, peerAddress, serverNameOf } from '../peer.ts'
import type { Origin } from '../peer.ts'
import { type RequestHead, readHead } from './request-head.ts'

export type Request = IncomingMessage | Http2ServerRequest
/** What the responses of both versions share. */
export type Response = Writable & {
  readonly headersSent: boolean
  writeHead(status: number, headers: string[]): unknown
  writeContinue(): void
  addTrailers(trailers: Record<string, string>): void
}

export type Exchange = {
  request: Request
  response: Response
  head: RequestHead
  origin: Origin
  /** The server name (SNI) of the connection; null without TLS, or without a name. */
  serverName: string | null
  /** Another host's gateway has handed it over. */
  isHandedOver: boolean
  /** The port of a unit that the server has let its sender in to; null for a visitor, whose host says where it goes. */
  portName: string | null
  hasBody: boolean
  /** Whether the visitor waits for 100 Continue before it sends its body. */
  expectsContinue: boolean
  /** Set if the visitor asks for a WebSocket; turns its connection into a byte stream, once the unit agreed. */
  upgrade: ((rawHeaders: readonly string[]) => Duplex) | null
}

/** Returns null if the request is ambiguous. */
export function readExchange(
  request: Request,
  response: Response,
  { expectsContinue, upgrade }: Pick<Exchange, 'expectsContinue' | 'upgrade'>,
): Exchange | null {
  const head = readHead({
    httpVersionMajor: request.httpVersionMajor,
    httpVersionMinor: request.httpVersionMinor,
    method: request.method ?? '',
    target: request.url ?? '',
    rawHeaders: request.rawHeaders,
  })
  const socket = isHttp2(request) ? request.stream.session?.socket : request.socket
  if (!head || !socket) return null
  const isByTls = isSecure(socket)
  return {
    request,
    response,
    head,
    origin: { address: peerAddress(socket), proto: isByTls ? 'https' : 'http' },
    serverName: isByTls ? serverNameOf(socket as TLSSocket) : null,
    isHandedOver: arrivalOf(socket)?.isHandedOver ?? false,
    portName: arrivalOf(socket)?.portName ?? null,
    hasBody: upgrade === null && announcesBody(request, head),
    expectsContinue,
    upgrade,
  }
}

export function isHttp2(request: Request): request is Http2ServerRequest {
  return request.httpVersionMajor === 2
}

/** In HTTP/1.1 the parser counts; the limit of HTTP/2 reports nothing (RFC 9113, 10.5.1). */
export function isTooLarge(request: Request, { headerBytes }: { headerBytes: number }): boolean {
  if (!isHttp2(request)) return false
  // Counted as it would be written: `name: value` and the line end.
  let bytes = 0
  for (const text of request.rawHeaders) bytes += text.length + 2
  return bytes > headerBytes
}

/**
 * Aborts a visit so that the visitor sees that it is incomplete. In HTTP/1.1 this closes the connection: the response
 * may already be sent, with the rest of the request's body to follow.
 */
export function abortExchange({ request }: Pick<Exchange, 'request'>): void {
  if (!isHttp2(request)) request.socket.destroy()
  else if (!request.stream.destroyed) request.stream.close(INTERNAL_ERROR)
}

/** RFC 9113, 7. */
const INTERNAL_ERROR = 2

/**
 * Begins a response with the status and reason phrase of the unit, which HTTP/2 does not have. A phrase that would be
 * no text is replaced by the usual one. Throws if there is no such status.
 */
export function writeResponseHead(
  { response }: Pick<Exchange, 'response'>,
  { status, reason }: { status: number; reason: string },
  headers: string[],
): void {
  if (response instanceof ServerResponse && REASON_PHRASE.test(reason))
    response.writeHead(status, reason, headers)
  else response.writeHead(status, headers)
}

/** RFC 9112, 4. */
const REASON_PHRASE = /^[\t\x20-\x7e\x80-\xff]*$/

/** Reads and drops the rest of a request's body. Resolves once no more will come. */
export function discardBody({ request }: Pick<Exchange, 'request'>): Promise<void> {
  return new Promise((resolve) => {
    // After the response is sent, only the connection's end shows that an HTTP/1.1 request was cut short.
    const ends = isHttp2(request) ? request : request.socket
    const done = () => {
      ends.off('close', done)
      resolve()
    }
    request.once('end', done)
    ends.once('close', done)
    request.resume()
  })
}

function announcesBody(request: Request, head: RequestHead): boolean {
  if (isHttp2(request)) return !request.stream.endAfterHeaders
  return head.isChunked || (head.contentLength !== null && head.contentLength !== '0')
}
