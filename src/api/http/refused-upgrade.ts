// Refuses a request for a WebSocket that was not opened.

import { type IncomingMessage, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { AppError } from '../../contract/errors.ts'
import { SECOND } from '../../lib/clock.ts'
import { errorEnvelope } from './errors.ts'

/** The one of RFC 6455. */
const VERSION = '13'
/** How long a client has to close the connection after us. */
export const CLOSE_WITHIN_MS = 2 * SECOND

export function checkVersion({ headers }: IncomingMessage): void {
  if (headers['sec-websocket-version'] !== VERSION)
    throw new AppError('upgrade_required', 426, `Send \`Sec-WebSocket-Version: ${VERSION}\`.`)
}

/** In the shape of every other refusal. The connection ends with it. */
export function refuseUpgrade(socket: Duplex, error: AppError, requestId: string): void {
  if (!socket.writable) return void socket.destroy()
  const body = JSON.stringify(errorEnvelope(error, requestId))
  const head = [
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status] ?? 'Error'}`,
    'content-type: application/json; charset=utf-8',
    'cache-control: no-store',
    'x-content-type-options: nosniff',
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${requestId}`,
    ...(error.retryAfterS === null ? [] : [`retry-after: ${error.retryAfterS}`]),
    ...(error.status === 426 ? [`sec-websocket-version: ${VERSION}`, 'upgrade: websocket'] : []),
    ...(error.status === 401 ? ['www-authenticate: Bearer'] : []),
    'connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
  const late = setTimeout(() => socket.destroy(), CLOSE_WITHIN_MS)
  socket.once('close', () => clearTimeout(late))
}
