// The engine's side of its socket: HTTP on a unix socket that only the server's group may open (design 2). Every
// request is validated against protocol.ts first. If a caller disconnects, its command or its log stream ends;
// everything else runs to its end. The socket of low-latency calls is opened too, and the TLS listener if it is configured.

import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { FleetListener } from '../../lib/ipc/fleet-tls.ts'
import { listenForGroup } from '../../lib/ipc/unix-socket.ts'
import { EngineError, isEngineError } from '../errors.ts'
import { decodeFrames } from './frames.ts'
import {
  EPOCH_HEADER,
  EPOCH_QUESTION,
  streamedOperations,
  twoWayOperations,
  unaryOperations,
} from './protocol.ts'
import type {
  StreamedOperation,
  StreamedRequest,
  TwoWayOperation,
  TwoWayRequest,
  UnaryOperation,
} from './protocol.ts'
import { errorAnswerOf, isMalformed, malformed, parseEpoch, parseRequest, performUnary } from './answers.ts'
import { streamedHandlers, twoWayHandlers } from './handlers.ts'
import { listenByTls } from './tls-listener.ts'
import { createQuickCalls, listenForQuickCalls } from './rpc-server.ts'
import type { EngineServerOptions } from './server-options.ts'
import { type FrameStream, openFrameStream } from './stream.ts'

/** A client that does not close its connection by then loses what it still sends. */
const CLIENT_CLOSES_WITHIN_MS = 2000

export type ServedEngine = {
  close: () => Promise<void>
  /** Null if it does not listen by TLS. */
  tls: Pick<FleetListener, 'port' | 'show'> | null
}

const STOPPING = new EngineError('engine_away', 'The engine is stopping.')
/** How long a server elsewhere, whose watches end at once, still uses the connections that it has. */
const LEAVES_MS = 500
/** What has an end of its own, such as a command, has this time when the engine stops. */
const ENDS_WITHIN_MS = 5000
const endless = new Set(['followLogs', 'followProcess', 'terminal', 'watchFiles'])
const hasAnEnd = (operation: string) => !operation.startsWith('watch') && !endless.has(operation)

/** Serves the engine until closed. Closing ends streams, what has an end a little later, and waits for other calls in progress. */
export async function serveEngine(options: EngineServerOptions): Promise<ServedEngine> {
  const { engine, epochs, socketPath, socketGid, log } = options
  const closing = new AbortController()
  const ending = new AbortController()
  let isLeaving = false
  let closeUnused = () => {}

  const server = createServer({ keepAliveTimeout: 0, requestTimeout: 0 }, (request, response) => {
    const operation = (request.url ?? '').slice(1)
    // Closing waits for connections to end, so this answer closes its connection.
    if (isLeaving) response.shouldKeepAlive = false
    answer(request, response, operation).catch((error: unknown) => refuse(response, operation, error))
  })
  server.maxConnections = 4096
  server.setTimeout(0)

  async function answer(
    request: IncomingMessage,
    response: ServerResponse,
    operation: string,
  ): Promise<void> {
    if (request.method !== 'POST') throw malformed('The method must be POST.')
    if (isUnary(operation)) {
      const body = await readBody(request, unaryOperations[operation].maxBodyBytes)
      await epochs.admit(epochOf(request))
      reply(response, 200, await performUnary(engine, operation, body))
    } else if (isStreamed(operation)) {
      const body = await readBody(request, streamedOperations[operation].maxBodyBytes)
      await epochs.admit(epochOf(request))
      await answerStreamed(operation, body, response)
    } else if (isTwoWay(operation)) {
      await epochs.admit(epochOf(request))
      await answerTwoWay(operation, request, response)
    } else if (operation === EPOCH_QUESTION) {
      reply(response, 200, epochs.newest())
    } else {
      throw malformed('The operation does not exist.')
    }
  }

  async function answerStreamed<K extends StreamedOperation>(
    operation: K,
    body: unknown,
    response: ServerResponse,
  ) {
    const request = parseRequest(streamedOperations[operation].request, body) as StreamedRequest[K]
    await streamAnswer(operation, response, (stream) => streamedHandlers[operation](engine, request, stream))
  }

  async function answerTwoWay<K extends TwoWayOperation>(
    operation: K,
    incoming: IncomingMessage,
    response: ServerResponse,
  ) {
    response.shouldKeepAlive = false
    const frames = decodeFrames(incoming.iterator({ destroyOnReturn: false }))
    const first = await frames.next()
    if (first.done || first.value.type !== 'message')
      throw malformed('The request does not begin with what is asked.')
    const asked = parseJson(first.value.data)
    const request = parseRequest(twoWayOperations[operation].request, asked) as TwoWayRequest[K]
    await streamAnswer(
      operation,
      response,
      (stream) => twoWayHandlers[operation](engine, request, frames, stream),
      (gone) => discardUntilClosed(frames, gone),
    )
  }

  async function streamAnswer(
    operation: string,
    response: ServerResponse,
    work: (stream: FrameStream) => Promise<void>,
    beforeEnd: (gone: AbortSignal) => Promise<void> = async () => {},
  ) {
    const stream = openFrameStream(response, (hasAnEnd(operation) ? ending : closing).signal)
    try {
      await work(stream)
    } catch (error) {
      if (stream.gone.aborted) return
      await stream.write('error', JSON.stringify(errorAnswerOf(error, operation, log)))
    } finally {
      if (!stream.gone.aborted) await beforeEnd(stream.gone)
      // Its connection is used no more.
      response.once('close', () => setImmediate(closeUnused))
      stream.end()
    }
  }

  function refuse(response: ServerResponse, operation: string, error: unknown): void {
    if (response.destroyed) return
    if (response.headersSent) {
      response.destroy()
      return
    }
    const status = statusOf(error)
    // The rest of an oversized body is not read: the connection ends with this answer.
    if (status === 400) response.shouldKeepAlive = false
    reply(response, status, errorAnswerOf(error, operation, log))
  }

  function reply(response: ServerResponse, status: number, body: unknown): void {
    if (isLeaving) response.shouldKeepAlive = false
    const text = Buffer.from(JSON.stringify(body))
    response
      .writeHead(status, { 'content-type': 'application/json', 'content-length': text.length })
      .end(text)
  }

  const quickCalls = createQuickCalls(options)
  const endCalls = () => {
    closing.abort(STOPPING)
    setTimeout(() => ending.abort(STOPPING), ENDS_WITHIN_MS).unref()
    closeUnused = () => server.closeIdleConnections()
    closeUnused()
  }
  const opened: { close(): Promise<void> }[] = []
  let leave = async () => {}
  const close = async () => {
    isLeaving = true
    const left = leave()
    if (options.tls) {
      closing.abort(STOPPING)
      await delay(LEAVES_MS)
    }
    await Promise.all([...opened.map((each) => each.close()), left])
  }
  try {
    const listening = await listenForGroup(server, socketPath, socketGid)
    opened.push({ close: async () => await listening.close(endCalls) })
    opened.push(await listenForQuickCalls(quickCalls, options))
    if (!options.tls) return { close, tls: null }
    const http = (socket: Socket) => void server.emit('connection', socket)
    const listener = await listenByTls(options.tls, { http, quick: quickCalls.take, log })
    leave = async () => await listener.close(() => {})
    return { close, tls: listener }
  } catch (error) {
    await close()
    throw error
  }
}

/**
 * A connection that is closed with input that nobody read is reset, and the answer with it. So the rest is read and thrown away
 * until the client, which has the answer, closes the connection itself.
 */
async function discardUntilClosed(frames: AsyncIterator<unknown>, gone: AbortSignal): Promise<void> {
  const over = AbortSignal.any([gone, AbortSignal.timeout(CLIENT_CLOSES_WITHIN_MS)])
  const discard = async () => {
    while (!(await frames.next()).done);
  }
  discard().catch(() => {})
  if (!over.aborted) await once(over, 'abort')
}

function isUnary(operation: string): operation is UnaryOperation {
  return Object.hasOwn(unaryOperations, operation)
}

function isStreamed(operation: string): operation is StreamedOperation {
  return Object.hasOwn(streamedOperations, operation)
}

function isTwoWay(operation: string): operation is TwoWayOperation {
  return Object.hasOwn(twoWayOperations, operation)
}

function epochOf(request: IncomingMessage): number {
  return parseEpoch(Number(request.headers[EPOCH_HEADER] ?? Number.NaN))
}

async function readBody(request: IncomingMessage, maxBytes: number): Promise<unknown> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > maxBytes) throw malformed(`The request is longer than ${maxBytes} bytes.`)
    chunks.push(chunk)
  }
  return parseJson(Buffer.concat(chunks))
}

function parseJson(text: Buffer): unknown {
  try {
    return JSON.parse(text.toString('utf8'))
  } catch {
    throw malformed('The request is not JSON.')
  }
}

function statusOf(error: unknown): number {
  if (isMalformed(error)) return 400
  return isEngineError(error) && error.kind !== 'internal' ? 422 : 500
}
