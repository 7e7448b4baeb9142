// Proxies a request that reads, without a body, which most visits are, at less cost than Node's HTTP client: on a connection of
// plain-connections.ts, with a response that plain-response.ts reads. A response in any other form is left to
// proxy-request.ts, from its first byte (decisions/gateway.md).

import { ServerResponse, validateHeaderName, validateHeaderValue } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Cut, Session } from '../sessions/open-sessions.ts'
import type { Phase } from '../sessions/session-limits.ts'
import type { Route } from '../route.ts'
import { UNSENT_BYTES } from '../tcp/splice.ts'
import { abortExchange, type Exchange, writeResponseHead } from './exchange.ts'
import type { ConnectionUser, PlainConnection, PlainConnections } from '../sessions/plain-connections.ts'
import { type BodyReader, createBodyReader, type PlainHead, parsePlainHead } from './plain-response.ts'
import type { ProxyResult } from './proxy-result.ts'
import { replayConnection } from './replayed-connection.ts'
import { headersForUnit, trailersForOther } from './request-head.ts'
import { headersForVisitor } from './response-head.ts'

export type PlainVisit = {
  exchange: Exchange
  session: Session
  route: Route
  connections: PlainConnections
  /** How long a connection may wait for another request. */
  keptMs: number
  /** Passes the visit to Node's client, which reads the response. */
  leaveToNode: (replayed: Duplex) => void
  resolve: (result: ProxyResult) => void
}

/** Of these no body is expected. */
const plainMethods = new Set(['GET', 'HEAD', 'OPTIONS'])

export function isPlain({ head, hasBody, upgrade, expectsContinue }: Exchange): boolean {
  const hasNoBody = !hasBody && head.contentLength === null && !head.isChunked
  return plainMethods.has(head.method) && hasNoBody && upgrade === null && !expectsContinue
}

export function proxyPlainRequest(visit: PlainVisit): void {
  new PlainRequest(visit).start()
}

class PlainRequest implements ConnectionUser {
  readonly #visit: PlainVisit
  /** Null once it was released or closed. */
  #connection: PlainConnection | null = null
  /** Set once the head of the response was read. */
  #body: BodyReader | null = null
  #keptMs = 0
  /** The last part of the body: it is sent with the end if that has come as well. */
  #held: Buffer | null = null
  #isHeadSent = false
  /** The phase of a visit that waits for more of the response. */
  #waiting: Phase = 'answering'
  #isConnected = false
  #isSettled = false

  constructor(visit: PlainVisit) {
    this.#visit = visit
  }

  start(): void {
    const { exchange, session, route, connections } = this.#visit
    session.enter('connecting')
    let head: string
    try {
      head = writeHead(exchange)
    } catch {
      this.#settle({ kind: 'malformed' })
      return
    }
    const connection = connections.take(route.port, this)
    this.#connection = connection
    if (!connection.socket.connecting) this.onConnected()
    connection.socket.write(head, 'latin1')
    session.onCut((why) => this.#onCut(why))
  }

  onConnected(): void {
    if (this.#isSettled) return
    this.#isConnected = true
    this.#visit.session.enter('awaiting')
  }

  onData(chunk: Buffer): void {
    if (this.#isSettled) return
    if (this.#body) {
      this.#readBody(this.#body, chunk)
      return
    }
    const { exchange, keptMs } = this.#visit
    const end = chunk.indexOf('\r\n\r\n')
    const text = end < 0 ? null : chunk.toString('latin1', 0, end + 2)
    const head =
      text === null ? null : parsePlainHead(text, { keptMs, isHead: exchange.head.method === 'HEAD' })
    if (head) this.#begin(head, chunk.subarray(end + 4))
    else this.#leaveToNode(chunk)
  }

  /** Also for a head that does not come whole, so nothing is collected here. */
  #leaveToNode(bytes: Buffer): void {
    const connection = this.#connection
    if (!connection) return
    this.#isSettled = true
    this.#connection = null
    this.#visit.leaveToNode(replayConnection(connection, bytes))
  }

  #begin({ status, reason, rawHeaders, framing, keptMs }: PlainHead, rest: Buffer): void {
    const { exchange, session, route } = this.#visit
    const { headers, isEventStream } = headersForVisitor(rawHeaders, {
      host: exchange.head.host,
      isPrivate: route.secretHash !== null,
    })
    try {
      writeResponseHead(exchange, { status, reason }, headers)
    } catch {
      this.#fail({ kind: 'bad-gateway' })
      return
    }
    session.enter('answering')
    const { socket } = this.#connection ?? {}
    if (isEventStream) session.staysOpen(() => socket?.bytesRead ?? 0)
    this.#waiting = session.phase
    this.#keptMs = keptMs
    this.#body = createBodyReader(framing)
    this.#readBody(this.#body, rest)
  }

  #readBody(body: BodyReader, bytes: Buffer): void {
    const read = body.read(bytes, this)
    // Bytes after the end belong to no response: like a malformed body, they end the visit, as in Node's client.
    if (read === null || read < bytes.length) this.#fail({ kind: 'bad-gateway' })
    else if (body.isDone) this.#end(body)
    else if (this.#held) {
      const held = this.#held
      this.#held = null
      this.#write(held)
    } else if (!this.#isHeadSent) setImmediate(() => this.#sendHead())
  }

  onBody(part: Buffer): void {
    const { session } = this.#visit
    if (session.phase !== 'stalled') session.enter(this.#waiting)
    if (this.#held) this.#write(this.#held)
    this.#held = part
  }

  #sendHead(): void {
    const { response } = this.#visit.exchange
    if (this.#isSettled || this.#isHeadSent || !(response instanceof ServerResponse)) return
    this.#isHeadSent = true
    response.flushHeaders()
  }

  #write(part: Buffer): void {
    const { exchange, session } = this.#visit
    this.#isHeadSent = true
    exchange.response.write(part)
    if (exchange.response.writableLength <= UNSENT_BYTES || session.phase === 'stalled') return
    const { socket } = this.#connection ?? {}
    socket?.pause()
    session.enter('stalled')
    exchange.response.once('drain', () => {
      // The connection may belong to another visit by now.
      if (this.#isSettled || this.#connection === null) return
      session.enter(this.#waiting)
      socket?.resume()
    })
  }

  #end({ rawTrailers }: BodyReader): void {
    const { exchange, session, connections } = this.#visit
    const { response } = exchange
    const connection = this.#connection
    this.#connection = null
    this.#isHeadSent = true
    if (connection) {
      connection.socket.resume()
      connections.release(connection, this.#keptMs)
    }
    if (rawTrailers.length > 0) response.addTrailers(trailersForOther(rawTrailers))
    session.enter('stalled')
    response.once('finish', () => this.#settle({ kind: 'closed' }))
    if (this.#held) response.end(this.#held)
    else response.end()
  }

  // The end

  onClosed(error: NodeJS.ErrnoException | null): void {
    const isReused = this.#connection?.isReused === true
    this.#connection = null
    if (!this.#isConnected) {
      this.#fail({ kind: 'refused-connection' })
      return
    }
    const isClosed = error === null || error.code === 'ECONNRESET' || error.code === 'EPIPE'
    this.#fail({ kind: isReused && !this.#body && isClosed ? 'stale' : 'bad-gateway' })
  }

  #onCut(why: Cut): void {
    if (why.kind !== 'late') return this.#fail({ kind: why.kind === 'moved' ? 'bad-gateway' : 'closed' })
    return this.#fail({ kind: why.phase === 'connecting' ? 'refused-connection' : 'too-slow' })
  }

  /** A response that has begun cannot be replaced: it is aborted, so that the visitor sees that it is incomplete. */
  #fail(outcome: ProxyResult): void {
    if (this.#isSettled) return
    const { exchange } = this.#visit
    const isBegun = exchange.response.headersSent
    this.#settle(isBegun ? { kind: 'closed' } : outcome)
    this.#connection?.socket.destroy()
    if (isBegun) abortExchange(exchange)
  }

  #settle(outcome: ProxyResult): void {
    if (this.#isSettled) return
    this.#isSettled = true
    this.#visit.session.onCut(() => {})
    this.#visit.resolve(outcome)
  }
}

/** Throws if no server would accept it. */
function writeHead({ head, origin }: Exchange): string {
  let text = `${head.method} ${head.target} HTTP/1.1\r\n`
  const headers = headersForUnit(head, origin)
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at] ?? ''
    const value = headers[at + 1] ?? ''
    validateHeaderName(name)
    validateHeaderValue(name, value)
    text += `${name}: ${value}\r\n`
  }
  return `${text}connection: keep-alive\r\n\r\n`
}
