// The gateway's listeners, and how connections become visits. One port serves HTTP/1.1; the TLS port serves HTTP/1.1,
// HTTP/2 and, selected by SNI, the protocols of TCP endpoints. MySQL has a port of its own.

import { createServer as createHttp1, type Server, type ServerOptions } from 'node:http'
import { createServer as createHttp2, type Http2Server, type Http2Session } from 'node:http2'
import type { Server as NetServer, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'
import { SECOND } from '../lib/clock.ts'
import { runLoop } from '../lib/loop.ts'
import type { Certificates } from './certificates/current.ts'
import { createConnectionLimiter } from './listen/connection-limits.ts'
import { type Exchange, isTooLarge, type Request, type Response, readExchange } from './http/exchange.ts'
import { createRawPaths, isAnswering } from './http/raw-paths.ts'
import type { HandedVisit } from './handover/protocol.ts'
import { applicationOf, type Arrival, peerOf, setArrival } from './peer.ts'
import { createMysqlPort } from './listen/mysql-port.ts'
import { handleMysqlConnection } from './tcp/mysql/handle-connection.ts'
import { CHECK_EVERY_MS } from './sessions/open-sessions.ts'
import { type Outcome, errorMessageOf } from './sessions/outcomes.ts'
import { writePage } from './http/pages.ts'
import { handleCancelRequest, takeCancel } from './tcp/postgres/cancel.ts'
import { createTlsPort } from './listen/tls-port.ts'
import { redisError, dispatchConnection } from './listen/tls-dispatch.ts'
import { handleRequest, sendErrorAtOnce } from './http/handle-request.ts'
import { createGatewayContext } from './context.ts'
import type { GatewayContextOptions } from './sessions/connect-to-unit.ts'
import type { Peers } from './workers/peers.ts'
import { type SessionLimits, sessionLimits } from './sessions/session-limits.ts'
import type { TicketKeys } from './workers/ticket-keys.ts'
import { asksForWebSocket, exchangeOfConnect, exchangeOfUpgrade } from './http/web-socket.ts'

export type GatewayOptions = Omit<GatewayContextOptions, 'limits'> & {
  certificates: Certificates
  limits?: SessionLimits
  /** Shared with other gateways on the same ports. */
  tickets?: TicketKeys
  /** Other gateways on the same ports. */
  peers?: Peers
}

export type Gateway = {
  /** HTTP/1.1 without TLS; the caller chooses where it listens. */
  http: Server
  /** Everything over TLS, on one port. */
  tls: NetServer
  /** For MySQL, where the server speaks first. */
  mysql: NetServer
  /** Serves a visit that another host's gateway has handed over. */
  takeVisit(socket: TLSSocket, visit: HandedVisit): void
  /** Serves requests of a caller that this host's server has let in. */
  takeCaller(socket: Socket, visit: HandedVisit & { kind: 'requests' }): void
  takeCancel(request: Buffer, socket: TLSSocket): Promise<boolean>
  /** The number of connections and visits. */
  count(): { connections: number; visits: number }
  close(): Promise<void>
}

export function createGateway(options: GatewayOptions): Gateway {
  const limits = options.limits ?? sessionLimits
  const context = createGatewayContext({ ...options, limits })
  const connections = createConnectionLimiter({ ...options, limits })
  const http1 = createHttp1(http1Options(limits))
  // A header above a limit would be dropped silently, and the two sides could read different requests.
  http1.maxHeadersCount = 0
  const rawPaths = createRawPaths(http1, limits)
  const http2 = createHttp2(http2Options(limits))

  const session = (exchange: Exchange | null, response: Response) => {
    if (exchange) void handleRequest(context, exchange, peerOf(exchange.origin.address))
    else sendErrorAtOnce(response, { kind: 'malformed' })
  }
  const onRequest = (expectsContinue: boolean) => (request: Request, response: Response) =>
    isTooLarge(request, limits)
      ? sendErrorAtOnce(response, { kind: 'head-too-large' })
      : session(readExchange(request, response, { expectsContinue, upgrade: null }), response)
  for (const server of [http1, http2]) {
    // Connections over TLS were counted before their handshake.
    server.on('connection', (socket: Socket) => {
      if (!(socket instanceof TLSSocket || rawPaths.isTaken(socket))) connections.enter(socket)
    })
    server.on('request', onRequest(false))
    server.on('checkContinue', onRequest(true))
  }
  http1.on('upgrade', (request, socket, first) => {
    const { exchange, response } = exchangeOfUpgrade(request, socket, first)
    session(exchange, response)
  })
  http2.on('connect', (request, response) => session(exchangeOfConnect(request, response), response))
  http1.on('clientError', (error, socket) => {
    if (!rawPaths.take(error, socket)) refuse(error, socket)
  })
  const sessions = watchSessions(http2, limits)

  const toHttp = (socket: TLSSocket) =>
    void (applicationOf(socket) === 'h2' ? http2 : http1).emit('connection', socket)

  const { tickets, peers } = options
  const tlsPort = createTlsPort({
    certificates: options.certificates,
    ...(tickets && { tickets }),
    greetingMs: limits.headersMs,
    onConnection: (socket) => connections.enter(socket),
    onGreeted: (socket, greeting) => void dispatchConnection(context, socket, greeting, () => toHttp(socket)),
    onCancel: (socket) => void handleCancelRequest(context, socket),
  })

  const mysql = createMysqlPort({
    certificates: options.certificates,
    ...(tickets && { tickets }),
    ...(peers && { worker: peers.number }),
    greetingMs: limits.headersMs / 2,
    onConnection: (socket) => connections.enter(socket),
    onGreeted: (socket, greeted) => void handleMysqlConnection(context, socket, greeted),
  })

  const stopping = new AbortController()
  const looking = runLoop(
    {
      name: 'open visits',
      everyMs: CHECK_EVERY_MS,
      timeoutMs: 10 * SECOND,
      async run() {
        await context.sessions.check()
        context.connections.sweep()
      },
    },
    { clock: options.clock, log: options.log, signal: stopping.signal },
  )

  return {
    http: http1,
    tls: tlsPort.server,
    mysql,
    takeVisit(socket, visit) {
      setArrival(socket, arrivalIn(visit))
      connections.enter(socket)
      if (socket.destroyed) return
      if (visit.kind === 'requests') toHttp(socket)
      else if (visit.kind === 'mysql') void handleMysqlConnection(context, socket, visit)
      else void dispatchConnection(context, socket, visit, () => toHttp(socket))
    },
    takeCaller(socket, visit) {
      setArrival(socket, { ...arrivalIn(visit), isHandedOver: false })
      http1.emit('connection', socket)
    },
    takeCancel: async (request, socket) => await takeCancel(context.cancelKeys, request, socket),
    count: () => ({ connections: connections.count(), visits: context.sessions.count() }),
    async close() {
      stopping.abort()
      const closed = [closeListening(http1), closeListening(mysql), tlsPort.close()]
      context.sessions.cutAll()
      for (const session of sessions) session.destroy()
      connections.closeAll()
      context.connections.close()
      await Promise.all([...closed, looking])
    },
  }
}

function arrivalIn(visit: HandedVisit): Arrival {
  const { address } = visit
  const none = { serverName: null, application: null, owner: null, portName: null }
  const plain = { ...none, address, isSecure: true, isHandedOver: true }
  if (visit.kind === 'requests')
    return { ...plain, isSecure: visit.isSecure, portName: visit.portName ?? null }
  const { serverName, owner } = visit
  return { ...plain, serverName, owner, application: visit.kind === 'tls' ? visit.application : null }
}

function closeListening(server: NetServer): Promise<unknown> | null {
  return server.listening ? new Promise((resolve) => server.close(resolve)) : null
}

function http1Options(limits: SessionLimits): ServerOptions {
  return {
    maxHeaderSize: limits.headerBytes,
    headersTimeout: limits.headersMs,
    // A large body takes time; the visit's own timeout limits it.
    requestTimeout: 0,
    keepAliveTimeout: limits.keepAliveMs,
    connectionsCheckingInterval: Math.min(SECOND, limits.headersMs),
    // The kernel detects a visitor that has vanished without closing.
    keepAlive: true,
    keepAliveInitialDelay: 30 * SECOND,
    shouldUpgradeCallback: asksForWebSocket,
  }
}

function http2Options(limits: SessionLimits) {
  return {
    settings: {
      enableConnectProtocol: true,
      maxConcurrentStreams: 128,
      maxHeaderListSize: limits.headerBytes,
      initialWindowSize: 256 * 1024,
    },
  }
}

/** Sessions end when they are idle, except with an open visit, which has its own timeout. */
function watchSessions(http2: Http2Server, { keepAliveMs }: SessionLimits): Set<Http2Session> {
  const sessions = new Set<Http2Session>()
  http2.on('session', (session) => {
    let streams = 0
    sessions.add(session)
    session.once('close', () => sessions.delete(session))
    session.on('error', () => session.destroy())
    session.on('stream', (stream) => {
      streams += 1
      stream.once('close', () => {
        streams -= 1
      })
    })
    session.setTimeout(keepAliveMs, () => {
      if (streams === 0) session.destroy()
    })
  })
  return sessions
}

/** Answers bytes that are not valid HTTP. */
function refuse(error: NodeJS.ErrnoException & { rawPacket?: Buffer }, socket: Duplex): void {
  // The error must not seem to be the response to an earlier request.
  if (!socket.writable || error.code === 'ECONNRESET' || isAnswering(socket)) {
    socket.destroy()
    return
  }
  const isTooLong = error.code === 'HPE_HEADER_OVERFLOW'
  const words = isTooLong ? null : redisError(socket, error.rawPacket)
  if (words !== null) {
    socket.end(words, () => socket.destroy())
    return
  }
  socket.once('finish', () => socket.destroy())
  socket.end(writePage(errorMessageOf(outcomeOf(error)), { acceptsHtml: false }))
}

function outcomeOf({ code }: NodeJS.ErrnoException): Outcome {
  if (code === 'HPE_HEADER_OVERFLOW') return { kind: 'head-too-large' }
  return { kind: code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 'visitor-too-slow' : 'malformed' }
}
