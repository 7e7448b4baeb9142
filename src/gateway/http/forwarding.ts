// One request on its way to a unit by Node's own client, and the answer on its way back (proxy-request.ts).

import {
  type Agent,
  type ClientRequest,
  type IncomingMessage,
  request as requestOf,
  ServerResponse,
} from 'node:http'
import type { Duplex } from 'node:stream'
import { abortExchange, discardBody, type Exchange, isHttp2, writeResponseHead } from './exchange.ts'
import { createInformationRelay } from './information.ts'
import type { Cut, Session } from '../sessions/open-sessions.ts'
import { listenToWebSocket } from '../tcp/pings/web-socket.ts'
import { splice } from '../tcp/splice.ts'
import { headersForUnit, trailersForOther } from './request-head.ts'
import { headersForVisitor } from './response-head.ts'
import type { ProxyResult } from './proxy-result.ts'
import type { Route } from '../route.ts'

/** Idempotent methods (RFC 9110, 9.2.2). */
const repeatable = new Set(['GET', 'HEAD', 'OPTIONS'])

const CONTINUE = 100

const MAX_ANSWER_HEADER_BYTES = 64 * 1024

/** A connection for a request, or one whose request was sent already (replayed-connection.ts). */
type Source = { agent: Agent } | { createConnection: () => Duplex }

export class Forwarding {
  readonly #exchange: Exchange
  readonly #session: Session
  readonly #route: Route
  readonly #resolve: (outcome: ProxyResult) => void
  #upstream: ClientRequest | null = null
  #answer: IncomingMessage | null = null
  #isSettled = false
  #isConnected = false
  #toldToContinue = false

  constructor(exchange: Exchange, session: Session, route: Route, resolve: (outcome: ProxyResult) => void) {
    this.#exchange = exchange
    this.#session = session
    this.#route = route
    this.#resolve = resolve
  }

  start(source: Source): void {
    const { head } = this.#exchange
    this.#session.enter('connecting')
    let upstream: ClientRequest
    try {
      upstream = requestOf({
        ...source,
        // The address of this run, never one from the request (reliability I27).
        host: this.#route.address,
        port: this.#route.port,
        method: head.method,
        path: head.target,
        headers: this.#headers(),
        setHost: false,
        maxHeaderSize: MAX_ANSWER_HEADER_BYTES,
      })
    } catch {
      // Node refuses to write a request that no server would accept.
      this.#settle({ kind: 'malformed' })
      return
    }
    this.#upstream = upstream
    upstream.on('error', (error: NodeJS.ErrnoException) => this.#onError(error))
    upstream.on('response', (answer) => this.#onAnswer(answer))
    upstream.on('upgrade', (answer, socket, first) => this.#onUpgrade(answer, socket, first))
    upstream.on('continue', () => this.#onContinue())
    const passInformation = createInformationRelay(this.#exchange, this.#route)
    upstream.on('information', (informed) => {
      if (!this.#isSettled && informed.statusCode !== CONTINUE) passInformation(informed)
    })
    upstream.on('socket', (socket) => {
      if (!socket.connecting) this.#onConnected()
      else socket.once('connect', () => this.#onConnected())
    })
    if (!this.#exchange.hasBody) upstream.end()
    this.#session.onCut((why) => this.#onCut(why))
  }

  #headers(): string[] {
    const { head, origin, hasBody, expectsContinue, upgrade } = this.#exchange
    const headers = headersForUnit(head, origin)
    if (upgrade) headers.push('connection', 'Upgrade', 'upgrade', 'websocket')
    else headers.push('connection', 'keep-alive')
    if (head.contentLength !== null) headers.push('content-length', head.contentLength)
    else if (hasBody) headers.push('transfer-encoding', 'chunked')
    else if (!repeatable.has(head.method)) headers.push('content-length', '0')
    if (expectsContinue) headers.push('expect', '100-continue')
    return headers
  }

  // The request

  /** No byte of the body is read before this: until here the request can be retried. */
  #onConnected(): void {
    if (this.#isSettled) return
    this.#isConnected = true
    this.#session.enter('awaiting')
    if (this.#exchange.hasBody) this.#upload()
  }

  #upload(): void {
    const { request, expectsContinue } = this.#exchange
    const upstream = this.#upstream
    if (!upstream) return
    // Head and first bytes are sent together if both are here already; else the head is sent at once.
    if (expectsContinue) upstream.flushHeaders()
    else setImmediate(() => upstream.flushHeaders())
    this.#session.enter('uploading')
    request.on('data', (chunk: Buffer) => {
      this.#session.uploadedBytes += chunk.length
      if (this.#isSettled || this.#isAnswered() || upstream.write(chunk)) return
      request.pause()
      if (!this.#answer) this.#session.enter('awaiting')
      upstream.once('drain', () => {
        if (!this.#answer) this.#session.enter('uploading')
        request.resume()
      })
    })
    request.on('end', () => {
      if (this.#isSettled || this.#isAnswered()) return
      const trailers = trailersForOther(request.rawTrailers)
      if (this.#exchange.head.contentLength === null) upstream.addTrailers(trailers)
      upstream.end()
      if (!this.#answer) this.#session.enter('awaiting')
    })
    request.on('error', () => {})
  }

  #onContinue(): void {
    if (!this.#exchange.expectsContinue || this.#toldToContinue || this.#isSettled) return
    this.#toldToContinue = true
    this.#exchange.response.writeContinue()
  }

  // The response

  #onAnswer(answer: IncomingMessage): void {
    answer.on('error', () => this.#onError(new Error('the response is incomplete')))
    if (this.#isSettled) return
    this.#answer = answer
    const { statusCode: status = 0, statusMessage: reason = '' } = answer
    const { headers, isEventStream } = headersForVisitor(answer.rawHeaders, {
      host: this.#exchange.head.host,
      isPrivate: this.#route.secretHash !== null,
    })
    if (this.#mustClose()) headers.push('connection', 'close')
    try {
      // A status below 200 is an informational response, and a correct server's never gets here.
      if (status < 200) throw new Error('not a status')
      writeResponseHead(this.#exchange, { status, reason }, headers)
    } catch {
      this.#fail({ kind: 'bad-gateway' })
      return
    }
    this.#session.enter('answering')
    if (isEventStream) this.#session.staysOpen(() => this.#upstream?.socket?.bytesRead ?? 0)
    this.#relay(answer)
  }

  #relay(answer: IncomingMessage): void {
    const { response } = this.#exchange
    const session = this.#session
    const waiting = session.phase
    answer.on('data', (chunk: Buffer) => {
      if (response.write(chunk)) session.enter(waiting)
      else {
        answer.pause()
        session.enter('stalled')
      }
    })
    response.on('drain', () => {
      if (session.phase === 'stalled') session.enter(waiting)
      answer.resume()
    })
    answer.on('end', () => this.#onAnswerEnd(answer))
    setImmediate(() => {
      if (!this.#isSettled && response instanceof ServerResponse) response.flushHeaders()
    })
  }

  #onAnswerEnd(answer: IncomingMessage): void {
    if (this.#isSettled) return
    const { response, request, hasBody } = this.#exchange
    if (answer.rawTrailers.length > 0) response.addTrailers(trailersForOther(answer.rawTrailers))
    this.#session.enter('stalled')
    const isSent = new Promise<void>((resolve) => response.once('finish', resolve))
    response.end()
    // A unit may answer before it has read everything. The visitor must be able to send the rest to read the
    // response.
    const isLeft = hasBody && !request.complete && !this.#mustClose()
    let isRead: Promise<void> | null = null
    if (isLeft) {
      this.#session.enter('leftover')
      this.#upstream?.destroy()
      isRead = discardBody(this.#exchange)
    }
    void Promise.all([isSent, isRead]).then(() => this.#settle({ kind: 'closed' }))
  }

  /**
   * Whether the visitor may or may not send the body it was not asked for: then no request can follow on this
   * connection.
   */
  #mustClose(): boolean {
    const { expectsContinue, request } = this.#exchange
    return expectsContinue && !this.#toldToContinue && !isHttp2(request)
  }

  #onUpgrade(answer: IncomingMessage, socket: Duplex, first: Buffer): void {
    socket.on('error', () => socket.destroy())
    const { upgrade } = this.#exchange
    if (this.#isSettled || !upgrade || answer.headers.upgrade?.toLowerCase() !== 'websocket') {
      socket.destroy()
      this.#fail({ kind: 'bad-gateway' })
      return
    }
    const { head } = this.#exchange
    const { headers } = headersForVisitor(answer.rawHeaders, { host: head.host, isPrivate: false })
    const session = this.#session
    const visitor = upgrade(headers)
    // Neither request is needed from here on, and there may be thousands of these objects.
    this.#upstream = null
    const ends = { visitor, unit: socket, first, listening: listenToWebSocket() }
    splice(session, ends, () => this.#settle({ kind: 'closed' }))
  }

  // The end

  #isAnswered(): boolean {
    return this.#answer !== null && this.#exchange.response.writableEnded
  }

  #onCut(why: Cut): void {
    if (why.kind !== 'late') return this.#fail({ kind: why.kind === 'moved' ? 'bad-gateway' : 'closed' })
    if (why.phase === 'connecting') return this.#fail({ kind: 'refused-connection' })
    return this.#fail({ kind: why.phase === 'uploading' ? 'visitor-too-slow' : 'too-slow' })
  }

  #onError(error: NodeJS.ErrnoException): void {
    if (this.#isAnswered()) return
    if (!this.#isConnected) return this.#fail({ kind: 'refused-connection' })
    const isClosed = error.code === 'ECONNRESET' || error.code === 'EPIPE'
    const isStale = this.#upstream?.reusedSocket && !this.#answer && isClosed
    const { head, hasBody } = this.#exchange
    this.#fail({ kind: isStale && !hasBody && repeatable.has(head.method) ? 'stale' : 'bad-gateway' })
  }

  /** A response that has begun cannot be replaced: it is aborted, so that the visitor sees that it is incomplete. */
  #fail(outcome: ProxyResult): void {
    if (this.#isSettled) return
    this.#upstream?.destroy()
    if (!this.#exchange.response.headersSent) return this.#settle(outcome)
    abortExchange(this.#exchange)
    this.#settle({ kind: 'closed' })
  }

  #settle(outcome: ProxyResult): void {
    if (this.#isSettled) return
    this.#isSettled = true
    this.#session.onCut(() => {})
    this.#resolve(outcome)
  }
}
