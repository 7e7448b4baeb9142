// Passes a request on to a port of a unit, and the answer back, as they come: neither is kept, and a slow reader slows the other
// side down. The gateway is at the other end of the connection (gateway/handover/callers.ts), and says by a header of its own
// that an answer is not the unit's.

import { type IncomingMessage, request as requestOf, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { AppError, providerError, unavailable } from '../../contract/errors.ts'
import { hasBody } from '../http/body.ts'
import { headersForCaller, headersForPort } from './headers.ts'
import type { PortTarget } from './target.ts'

type Sent = { request: IncomingMessage; connection: Duplex; target: PortTarget; signal: AbortSignal }

const OUTCOME = 'x-berth-outcome'
/** Pipelines have several at each end. */
export const LISTENERS = 32
/** Of what the gateway says; its sentences are far shorter. */
const SAID_BYTES = 16 * 1024
/** Of the head of a unit's answer, as the gateway has it. */
const HEAD_BYTES = 64 * 1024

/** Throws before the answer has begun; after that a failure closes the connection. */
export async function passRequest({ response, ...sent }: Sent & { response: ServerResponse }): Promise<void> {
  const { request, target, signal } = sent
  const { answer, uploaded } = await begin(sent)
  if (answer.headers[OUTCOME] !== undefined) throw await outcomeOf(answer)
  response.writeHead(
    answer.statusCode ?? 502,
    answer.statusMessage ?? '',
    headersForCaller(answer.rawHeaders, target, request.headers.host ?? ''),
  )
  response.flushHeaders()
  response.setMaxListeners(LISTENERS)
  await pipeline(answer, response, { signal })
  // Many clients read no answer before they have sent their whole body.
  request.resume()
  await uploaded
}

/** Returns both ends once the unit agreed to a WebSocket, with the head for the caller. Throws what it answered else. */
export async function passUpgrade(sent: Sent): Promise<{ unit: Duplex; first: Buffer; headers: string[] }> {
  const upgrade = ['connection', 'Upgrade', 'upgrade', 'websocket']
  const { answer, upgraded } = await begin(sent, upgrade)
  if (upgraded === null) {
    if (answer.headers[OUTCOME] !== undefined) throw await outcomeOf(answer)
    answer.destroy()
    throw providerError(`The unit opened no WebSocket: it answered with status ${answer.statusCode}.`)
  }
  return {
    ...upgraded,
    headers: headersForCaller(answer.rawHeaders, sent.target, sent.request.headers.host ?? ''),
  }
}

type Begun = {
  answer: IncomingMessage
  upgraded: { unit: Duplex; first: Buffer } | null
  /** Resolves once the body was sent, or is not wanted any more. */
  uploaded: Promise<void>
}

async function begin({ request, connection, target, signal }: Sent, more: string[] = []): Promise<Begun> {
  const upstream = requestOf({
    createConnection: () => connection,
    method: request.method,
    path: target.target,
    headers: [...headersForPort(request, target), ...more],
    setHost: false,
    maxHeaderSize: HEAD_BYTES,
    signal,
  })
  const begun = Promise.withResolvers<Omit<Begun, 'uploaded'>>()
  upstream.on('error', (error) => begun.reject(signal.aborted ? signal.reason : lost(error)))
  upstream.once('response', (answer) => begun.resolve({ answer, upgraded: null }))
  upstream.once('upgrade', (answer, unit, first) => begun.resolve({ answer, upgraded: { unit, first } }))
  const uploaded = hasBody(request)
    ? pipeline(request, upstream, { end: true }).catch(() => {})
    : Promise.resolve()
  if (!hasBody(request)) upstream.end()
  return { ...(await begun.promise), uploaded }
}

function lost(cause: Error): AppError {
  return providerError('The connection to the unit was lost before it answered.', { cause })
}

/** What the gateway says in place of a unit, in the words of the API. */
async function outcomeOf(answer: IncomingMessage): Promise<AppError> {
  let text = ''
  for await (const chunk of answer) {
    text += String(chunk)
    if (text.length > SAID_BYTES) break
  }
  const { message } = (JSON.parse(text) as { error: { message: string } }).error
  const status = answer.statusCode ?? 502
  if (status === 503) return unavailable(message, Number(answer.headers['retry-after'] ?? 5))
  if (status < 500) return new AppError('validation', 400, message)
  return providerError(message)
}
