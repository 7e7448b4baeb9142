// How visitors ask for a WebSocket, and what becomes of their connection when the unit agrees: HTTP/1.1 turns
// all of it into bytes (RFC 6455), HTTP/2 one stream of it (RFC 8441). The unit is always asked by HTTP/1.1.

import { randomBytes } from 'node:crypto'
import { type IncomingMessage, ServerResponse, validateHeaderName, validateHeaderValue } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type Exchange, readExchange } from './exchange.ts'

/**
 * No other upgrade is taken up: the request is answered as if it did not ask for one. Nor one with a body, whose
 * bytes nobody could tell from those of the WebSocket.
 */
export function asksForWebSocket({ method, headers, httpVersion }: IncomingMessage): boolean {
  return (
    method === 'GET' &&
    httpVersion === '1.1' &&
    headers.upgrade?.toLowerCase() === 'websocket' &&
    headers['content-length'] === undefined &&
    headers['transfer-encoding'] === undefined
  )
}

/** Of a connection that Node has let go of. `first`: what the visitor has sent already. */
export function exchangeOfUpgrade(request: IncomingMessage, socket: Duplex, first: Buffer) {
  socket.on('error', () => socket.destroy())
  const response = new ServerResponse(request)
  response.shouldKeepAlive = false
  // Node's own connections end here, which its types do not say.
  if (!(socket instanceof Socket)) throw new TypeError('an upgrade of something other than a connection')
  response.assignSocket(socket)
  response.once('finish', () => socket.destroySoon())
  const upgrade = (rawHeaders: readonly string[]) => {
    const head = ['HTTP/1.1 101 Switching Protocols', 'connection: Upgrade', 'upgrade: websocket']
    for (let at = 0; at < rawHeaders.length; at += 2) {
      const [name = '', value = ''] = rawHeaders.slice(at, at + 2)
      validateHeaderName(name)
      validateHeaderValue(name, value)
      head.push(`${name}: ${value}`)
    }
    response.detachSocket(socket)
    socket.write(`${head.join('\r\n')}\r\n\r\n`, 'latin1')
    if (first.length > 0) socket.unshift(first)
    return socket
  }
  return { response, exchange: readExchange(request, response, { expectsContinue: false, upgrade }) }
}

/** Null: some other CONNECT. */
export function exchangeOfConnect(
  request: Http2ServerRequest,
  response: Http2ServerResponse,
): Exchange | null {
  if (request.headers[':protocol'] !== 'websocket') return null
  const upgrade = (rawHeaders: readonly string[]) => {
    // The answer to a key that the visitor knows nothing of.
    const headers = rawHeaders.filter((_text, at) => !isAccept(rawHeaders[at - (at % 2)]))
    response.writeHead(200, headers)
    return response.stream
  }
  const exchange = readExchange(request, response, { expectsContinue: false, upgrade })
  if (!exchange) return null
  const headers = [...exchange.head.headers, 'sec-websocket-key', randomBytes(16).toString('base64')]
  return { ...exchange, head: { ...exchange.head, method: 'GET', headers } }
}

function isAccept(name: string | undefined): boolean {
  return name?.toLowerCase() === 'sec-websocket-accept'
}
