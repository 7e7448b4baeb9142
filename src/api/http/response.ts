// Writes every response of the service, except the events of a stream (sse.ts).

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

export function send(
  response: ServerResponse,
  status: number,
  text: string | Uint8Array,
  headers: Headers,
): void {
  // The client has disconnected, or a stream has already sent the head.
  if (response.destroyed || response.headersSent) return
  const body = Buffer.from(text)
  response.writeHead(status, { ...headers, 'content-length': body.length })
  // Applies until the answer is sent; a kept connection has its own timeout.
  response.socket?.setTimeout(STALLED_MS)
  if (response.req.complete) response.end(body)
  else endOnceRead(response, body)
}

/** A client that reads nothing of its answer for this long is disconnected. */
const STALLED_MS = 60_000

/**
 * How long the rest of a refused body is read, for a client that reads the answer only after it has sent everything.
 */
const DROP_FOR_MS = 10_000

/**
 * Reads and drops the rest of a refused body before the connection closes: many clients send the whole body first,
 * and would see a broken connection instead of the answer.
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

/** By the error codes of Node's HTTP parser. */
const malformations: Record<string, Malformation> = {
  HPE_HEADER_OVERFLOW: { code: 'headers_too_large', status: 431, message: 'The headers are too large.' },
  ERR_HTTP_REQUEST_TIMEOUT: {
    code: 'request_timeout',
    status: 408,
    message: 'The request did not arrive in time.',
  },
}

/** The client may never close its half of the connection; ours is closed after this time. */
const LINGER_MS = 1000

/** Answers bytes that are not HTTP in the shape of the other errors, then closes the connection. */
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
