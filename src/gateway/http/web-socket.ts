// WebSocket requests, and the byte stream they become when the unit agrees: in HTTP/1.1 the whole connection (RFC
// 6455), in HTTP/2 one stream of it (RFC 8441). The unit always gets an HTTP/1.1 request.

import { randomBytes } from 'node:crypto'
import { type IncomingMessage, ServerResponse, validateHeaderName, validateHeaderValue } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type Exchange, readExchange } from './exchange.ts'

/**
 * Other upgrades are ignored: the request is answered as if it asked for none. So is one with a body, whose bytes
 * could not be told from those of the WebSocket.
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

/** For a connection that Node has released. `first`: bytes that the visitor has already sent. */
export function exchangeOfUpgrade(request: IncomingMessage, socket: Duplex, first: Buffer) {
  socket.on('error', () => socket.destroy())
  const response = new ServerResponse(request)
  response.shouldKeepAlive = false
  // The object is always Node's own socket, which its types do not say.
  if (!(socket instanceof Socket)) throw new TypeError('an upgrade without a socket')
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

/** Returns null for any other CONNECT. */
export function exchangeOfConnect(
  request: Http2ServerRequest,
  response: Http2ServerResponse,
): Exchange | null {
  if (request.headers[':protocol'] !== 'websocket') return null
  const upgrade = (rawHeaders: readonly string[]) => {
    // The response to a key that the visitor does not know.
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
