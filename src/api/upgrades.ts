// WebSockets of the API: the request goes through the same operation as any other, and the WebSocket opens once the
// operation has begun. Until then, errors are JSON responses like those of every call.

import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocket, WebSocketServer } from 'ws'
import type { App } from '../app.ts'
import type { AppError } from '../contract/errors.ts'
import { SECOND } from '../lib/clock.ts'
import type { Operations } from './operation.ts'
import { readPortTarget } from './ports/target.ts'
import { servePortUpgrade } from './ports/upgrade.ts'
import type { Route } from './route.ts'
import { isWebSocketAnswer, type WebSocketAnswer } from './http/web-socket-answer.ts'
import { callerGone, errorEnvelope, logError, toAppError } from './http/errors.ts'
import { misdirected, type HostCheck } from './http/hosts.ts'
import { checkVersion, CLOSE_WITHIN_MS, refuseUpgrade } from './http/refused-upgrade.ts'
import { openPeer } from './http/web-socket-peer.ts'
import * as http from './http/request.ts'

const PING_EVERY_MS = 30 * SECOND
const MESSAGE_BYTES = 1024 * 1024
/** Spoken where the client offers it, as a client has to that offers its bearer beside it. */
const PROTOCOL = 'berth.v1'
const BEARER_PROTOCOL = 'base64url.bearer.authorization.berth.'

export type Upgrades = {
  isWanted: (request: IncomingMessage) => boolean
  accept: (request: IncomingMessage, socket: Duplex, head: Buffer) => void
}

type Given = {
  app: App
  operations: Operations
  routes: readonly Route[]
  isOurs: HostCheck
  peerOf: (request: IncomingMessage) => string
  stopping: AbortSignal
}

export function createUpgrades(given: Given): Upgrades {
  const patterns = given.routes
    .filter(({ status }) => status === 101)
    .map((route) => ({ route, pattern: new RegExp(`^${route.path.replace('{id}', '([^/]+)')}$`) }))
  const find = (request: IncomingMessage) => {
    const [path = ''] = (request.url ?? '').split('?')
    for (const { route, pattern } of patterns) {
      const id = pattern.exec(path)?.[1]
      if (id !== undefined) return { route, params: { id } }
    }
    return null
  }
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: MESSAGE_BYTES,
    perMessageDeflate: false,
    handleProtocols: (offered) => (offered.has(PROTOCOL) ? PROTOCOL : false),
  })
  // Each handshake has one while it lasts: Node would warn of a leak from the eleventh at once on.
  sockets.setMaxListeners(0)
  return {
    isWanted: (request) =>
      request.method === 'GET' &&
      (request.headers.upgrade ?? '').toLowerCase() === 'websocket' &&
      (find(request) !== null || readPortTarget(request.url ?? '') !== null),
    accept: (request, socket, head) => {
      // Without a listener, an error of the connection would end the process.
      socket.on('error', () => {})
      const target = readPortTarget(request.url ?? '')
      if (target)
        return void servePortUpgrade(given, { request, socket, head, target, bearer: offeredBearer(request) })
      const match = find(request)
      if (match === null) return void socket.destroy()
      void serve(given, sockets, { request, socket, head, ...match })
    },
  }
}

type UpgradeRequest = {
  request: IncomingMessage
  socket: Duplex
  head: Buffer
  route: Route
  params: { id: string }
}

/** Never rejects. */
async function serve(
  { app, operations, isOurs, peerOf, stopping }: Given,
  sockets: WebSocketServer,
  { request, socket, head, route, params }: UpgradeRequest,
): Promise<void> {
  const requestId = http.requestIdOf(request)
  const beganMs = app.clock.monotonicMs()
  const gone = new AbortController()
  const over = new AbortController()
  const signal = AbortSignal.any([gone.signal, stopping])
  let status = 101
  let client: WebSocket | null = null
  socket.once('close', () => gone.abort(callerGone()))
  try {
    if (!isOurs(request)) throw misdirected(app.config.publicUrl)
    checkVersion(request)
    const query = http.queryOf(request.url ?? '')
    await operations.run(
      {
        ...senderOf(request, app.config.publicUrl, query),
        peer: peerOf(request),
        requestId,
        route,
        params,
        query,
        readBody: async () => Buffer.alloc(0),
        bodyBytes: 0,
        isUpgrade: true,
        signal,
        abort: (reason) => gone.abort(reason),
        onceAnswered: (callback) => {
          if (over.signal.aborted) callback()
          else over.signal.addEventListener('abort', callback, { once: true })
        },
        addHeader: () => {},
      },
      {
        json: () => {
          throw new TypeError('this route answers with a WebSocket only')
        },
        stream: async (stream) => {
          if (!isWebSocketAnswer(stream)) throw new TypeError('this route answers with a WebSocket only')
          signal.throwIfAborted()
          client = await shakeHands(sockets, { request, socket, head, requestId })
          await serveClient(app, client, stream, signal)
        },
      },
    )
    close(client, 1000)
  } catch (error) {
    const known = toAppError(error)
    status = client ? status : known.status
    logError(app.log, error, requestId)
    if (client) sendError(client, known, requestId)
    else refuseUpgrade(socket, known, requestId)
  } finally {
    over.abort()
    const ms = app.clock.monotonicMs() - beganMs
    app.observer.callAnswered({ method: 'GET', route: route.path, status, ms })
  }
}

/**
 * A browser sends no header of its own, so a bearer may come as a protocol, and the team as a parameter. A session must say
 * which page uses it.
 */
function senderOf(request: IncomingMessage, publicUrl: string, query: Record<string, string | string[]>) {
  const sender = http.senderOf(request, publicUrl)
  const { presented } = sender
  const team = presented.team ?? (typeof query['team'] === 'string' ? query['team'] : null)
  return {
    ...sender,
    presented: { ...presented, authorization: presented.authorization ?? offeredBearer(request), team },
    fromOwnPages: request.headers.origin !== undefined && sender.fromOwnPages,
  }
}

function offeredBearer({ headers }: IncomingMessage): string | null {
  const offered = (headers['sec-websocket-protocol'] ?? '').split(',').map((each) => each.trim())
  const bearer = offered.find((each) => each.startsWith(BEARER_PROTOCOL))
  if (bearer === undefined) return null
  return `Bearer ${Buffer.from(bearer.slice(BEARER_PROTOCOL.length), 'base64url').toString('latin1')}`
}

type Handshake = { request: IncomingMessage; socket: Duplex; head: Buffer; requestId: string }

/** A handshake that is none is answered by the library, and its connection closed. */
async function shakeHands(
  sockets: WebSocketServer,
  { request, socket, head, requestId }: Handshake,
): Promise<WebSocket> {
  const shaken = Promise.withResolvers<WebSocket>()
  const addHeaders = (headers: string[], of: IncomingMessage) => {
    if (of === request) headers.push(`x-request-id: ${requestId}`)
  }
  const onClose = () => shaken.reject(callerGone())
  sockets.on('headers', addHeaders)
  socket.once('close', onClose)
  try {
    sockets.handleUpgrade(request, socket, head, shaken.resolve)
    return await shaken.promise
  } finally {
    sockets.off('headers', addHeaders)
    socket.off('close', onClose)
  }
}

/** Throws what the route throws, or why it was ended. */
async function serveClient(
  app: App,
  client: WebSocket,
  { serveWebSocket }: WebSocketAnswer,
  signal: AbortSignal,
): Promise<void> {
  const peer = openPeer(client)
  const done = new AbortController()
  const pings = ping(app, client, done.signal)
  try {
    await serveWebSocket(peer)
    signal.throwIfAborted()
  } catch (error) {
    throw signal.aborted ? signal.reason : error
  } finally {
    peer.end()
    done.abort()
    await pings
  }
}

/** Keeps proxies from closing what is silent, and lets the kernel find out that a client is gone. */
async function ping(app: App, client: WebSocket, done: AbortSignal): Promise<void> {
  while (!done.aborted) {
    await app.clock.sleep(PING_EVERY_MS, done).catch(() => {})
    if (!done.aborted && client.readyState === WebSocket.OPEN) client.ping()
  }
}

function sendError(client: WebSocket, error: AppError, requestId: string): void {
  if (client.readyState === WebSocket.OPEN) client.send(JSON.stringify(errorEnvelope(error, requestId)))
  close(client, error.status < 500 ? 1008 : 1011)
}

function close(client: WebSocket | null, code: number): void {
  if (client === null) return
  client.resume()
  client.close(code)
  const late = setTimeout(() => client.terminate(), CLOSE_WITHIN_MS)
  client.once('close', () => clearTimeout(late))
}
