// A request and the answer to it, of HTTP/1.1 or HTTP/2: Node's own objects, as far as both are alike.

import type { IncomingMessage } from 'node:http'
import type { Http2ServerRequest } from 'node:http2'
import type { Duplex, Writable } from 'node:stream'
import { TLSSocket } from 'node:tls'
import { peerAddress, serverNameOf } from '../peer.ts'
import { type Origin, type RequestHead, readHead } from './request-head.ts'

export type Request = IncomingMessage | Http2ServerRequest
/** What the answers of both versions have in common. */
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
  /** What the visitor's TLS greeting named; null without TLS, or without a name. */
  serverName: string | null
  hasBody: boolean
  /** The visitor sends its body once it is told to. */
  expectsContinue: boolean
  /** The visitor wants a WebSocket; this turns its connection into bytes, once the unit agreed. */
  upgrade: ((rawHeaders: readonly string[]) => Duplex) | null
}

/** Null: not to be understood in one way only. */
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
  const isSecure = socket instanceof TLSSocket
  return {
    request,
    response,
    head,
    origin: { address: peerAddress(socket), proto: isSecure ? 'https' : 'http' },
    serverName: isSecure ? serverNameOf(socket) : null,
    hasBody: upgrade === null && announcesBody(request, head),
    expectsContinue,
    upgrade,
  }
}

export function isHttp2(request: Request): request is Http2ServerRequest {
  return request.httpVersionMajor === 2
}

/** In HTTP/1.1 the parser counts; HTTP/2 has a bound of its own, which tells nobody (RFC 9113, 10.5.1). */
export function isTooLarge(request: Request, { headerBytes }: { headerBytes: number }): boolean {
  if (!isHttp2(request)) return false
  // As it would have been written: `name: value` and the end of the line.
  let bytes = 0
  for (const text of request.rawHeaders) bytes += text.length + 2
  return bytes > headerBytes
}

/**
 * Ends a visit in a way that shows it is not whole. In HTTP/1.1 that takes the connection: its answer may be sent
 * already, and still be followed by a body nobody wants.
 */
export function abortExchange({ request }: Pick<Exchange, 'request'>): void {
  if (!isHttp2(request)) request.socket.destroy()
  else if (!request.stream.destroyed) request.stream.close(INTERNAL_ERROR)
}

/** Of RFC 9113, 7. */
const INTERNAL_ERROR = 2

/** Reads what is left of a request's body for nobody. Resolves once nothing more of it will come. */
export function discardBody({ request }: Pick<Exchange, 'request'>): Promise<void> {
  return new Promise((resolve) => {
    // Behind a sent answer only the connection tells that HTTP/1.1 has ended within a body.
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
