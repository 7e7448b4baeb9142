// How an answer leaves: every response of the service is written here or, event by event, in sse.ts.

import { STATUS_CODES, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { AppError } from '../../contract/errors.ts'
import { newId } from '../../lib/ids.ts'
import { errorEnvelope } from './errors.ts'
import { jsonText } from './json-text.ts'

type Headers = Record<string, string | string[]>

export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Headers = {},
): void {
  send(response, status, jsonText(body), {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
    ...headers,
  })
}

export function sendError(
  response: ServerResponse,
  error: AppError,
  requestId: string,
  headers: Headers = {},
): void {
  sendJson(response, error.status, errorEnvelope(error, requestId), {
    ...(error.retryAfterS === null ? {} : { 'retry-after': String(error.retryAfterS) }),
    ...(error.status === 401 ? { 'www-authenticate': 'Bearer' } : {}),
    ...headers,
  })
}

export function send(response: ServerResponse, status: number, text: string, headers: Headers): void {
  // Nobody is left to read it, or a stream has already said it.
  if (response.destroyed || response.headersSent) return
  const body = Buffer.from(text)
  response.writeHead(status, { ...headers, 'content-length': body.length })
  // Until all of it is sent; a kept connection has a time of its own.
  response.socket?.setTimeout(STALLED_MS)
  if (response.req.complete) response.end(body)
  else endOnceRead(response, body)
}

/** A caller that takes nothing more of its answer for this long is gone. */
const STALLED_MS = 60_000

/** A sender that reads no answer before it has sent all is given this long. */
const DROP_FOR_MS = 10_000

/**
 * What is left of a refused body is read and dropped before the connection may close: many clients send all
 * of it first, and a connection that breaks meanwhile would hide the answer from them.
 */
function endOnceRead(response: ServerResponse, body: Buffer): void {
  const { req } = response
  response.write(body)
  const late = setTimeout(() => response.end(), DROP_FOR_MS)
  req.once('close', () => clearTimeout(late))
  req.once('end', () => response.end())
  req.resume()
}

type Malformation = Pick<AppError, 'code' | 'status' | 'message'>

const malformed: Malformation = {
  code: 'validation',
  status: 400,
  message: 'This is not a well-formed HTTP request.',
}

/** By the codes of Node's parser. */
const malformations: Record<string, Malformation> = {
  HPE_HEADER_OVERFLOW: { code: 'headers_too_large', status: 431, message: 'The headers are too large.' },
  ERR_HTTP_REQUEST_TIMEOUT: {
    code: 'request_timeout',
    status: 408,
    message: 'The request did not arrive in time.',
  },
}

/** The other side may leave its half of a connection open for ever; ours is closed after this. */
const LINGER_MS = 1000

/** For what is not HTTP enough to become a request: an answer in the same shape, and the end. */
export function refuseMalformed(error: Error & { code?: string }, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET') return void socket.destroy()
  const { code, status, message } = malformations[error.code ?? ''] ?? malformed
  const requestId = newId('request')
  const refused = new AppError(code, status, message)
  const body = JSON.stringify(errorEnvelope(refused, requestId))
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${requestId}`,
    'connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
  const late = setTimeout(() => socket.destroy(), LINGER_MS)
  socket.once('close', () => clearTimeout(late))
}
