// Server-Sent Events. A client that reads slowly holds the producer back; a client that disconnects aborts it. A
// comment is sent after every 15 s of silence, so that no proxy closes the connection (design 5).

import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { AppError } from '../../contract/errors.ts'
import { type Clock, SECOND } from '../../lib/clock.ts'
import { callerGone, errorEnvelope, toAppError } from './errors.ts'
import { jsonText } from './json-text.ts'

export const EVENT_STREAM = 'text/event-stream'

export type StreamEvent = { event: string; data: unknown; id?: string }

/** Waits until the client can take more. */
export type Send = (event: StreamEvent) => Promise<void>

export type EventStream = { streamEvents: (send: Send) => Promise<void> }

export function eventStream(streamEvents: (send: Send) => Promise<void>): EventStream {
  return { streamEvents }
}

export function isEventStream(value: unknown): value is EventStream {
  return typeof value === 'object' && value !== null && 'streamEvents' in value
}

/** Work that is refused usually fails at once: an error within this time still gets its own status. */
const OPEN_AFTER_MS = SECOND
const COMMENT_EVERY_MS = 15 * SECOND

/**
 * Sends the stream to its end. Throws the stream's error or the signal's reason; if the stream was already open, the
 * error was also sent as event `error`.
 */
export async function sendEvents(
  response: ServerResponse,
  stream: EventStream,
  { clock, signal, requestId }: { clock: Clock; signal: AbortSignal; requestId: string },
): Promise<void> {
  const done = new AbortController()
  const pulse = keepAlive(response, clock, done.signal)
  try {
    await stream.streamEvents(async (event) => {
      // A producer that ignores the signal must not go on without a client.
      signal.throwIfAborted()
      if (response.destroyed) throw callerGone()
      await write(response, frame(event))
    })
    signal.throwIfAborted()
    openStream(response)
  } catch (error) {
    const told: unknown = signal.aborted ? signal.reason : error
    if (response.headersSent) await write(response, frame(errorEvent(toAppError(told), requestId)))
    throw told
  } finally {
    done.abort()
    await pulse
    if (response.headersSent) response.end()
  }
}

function errorEvent(error: AppError, requestId: string): StreamEvent {
  return { event: 'error', data: errorEnvelope(error, requestId) }
}

async function keepAlive(response: ServerResponse, clock: Clock, done: AbortSignal): Promise<void> {
  try {
    await clock.sleep(OPEN_AFTER_MS, done)
    for (;;) {
      await write(response, ': still here\n\n', done)
      await clock.sleep(COMMENT_EVERY_MS, done)
    }
  } catch (error) {
    if (!done.aborted) throw error
  }
}

async function write(response: ServerResponse, text: string, signal?: AbortSignal): Promise<void> {
  if (response.destroyed) return
  openStream(response)
  if (response.write(text)) return
  await whenWritable(response, signal)
}

/** Until there is room for more. A caller that goes away instead of reading on ends the wait as well. */
export async function whenWritable(response: ServerResponse, signal?: AbortSignal): Promise<void> {
  const settled = new AbortController()
  const options = { signal: signal ? AbortSignal.any([signal, settled.signal]) : settled.signal }
  try {
    await Promise.race([once(response, 'drain', options), once(response, 'close', options)])
  } finally {
    settled.abort()
  }
}

/** Opens a stream and sends its head. */
export function openStream(response: ServerResponse): ServerResponse {
  if (response.headersSent) return response
  response.writeHead(200, {
    'content-type': `${EVENT_STREAM}; charset=utf-8`,
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
  })
  response.flushHeaders()
  return response
}

/** JSON has no bare line breaks, so the data of an event is always one line. */
function frame({ event, data, id }: StreamEvent): string {
  const idLine = id === undefined ? '' : `id: ${id.replace(/[\r\n\0]/g, '')}\n`
  return `event: ${event}\n${idLine}data: ${jsonText(data)}\n\n`
}
