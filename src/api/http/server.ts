// The HTTP server: request ids, routing, and every answer in the contract's shape. The only file that
// knows the framework, which does nothing here but listen and route: bodies are read by operation.ts,
// once their sender is known.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { isIP } from 'node:net'
import { z } from 'zod'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { App } from '../../app.ts'
import { AppError } from '../../contract/errors.ts'
import { addressMatcher } from '../../lib/address-ranges.ts'
import { SECOND } from '../../lib/clock.ts'
import { tellBoundMet } from '../../lib/bound-met.ts'
import { completesWithin } from '../../lib/concurrency/completes-within.ts'
import { readBody } from './body.ts'
import { createHostCheck, misdirected } from './hosts.ts'
import { boundConnections, connectionLimits } from './connections.ts'
import { callerGone, logError, serverStopping, toAppError } from './errors.ts'
import { refuseMalformed, sendError, sendJson } from './response.ts'
import * as http from './request.ts'
import { createMcpEndpoint, mcpMethods, mcpPaths } from '../mcp/endpoint.ts'
import { createOperations, type Operations } from '../operation.ts'
import type { Page, PageRequest } from '../web/page.ts'
import { answerPage, pages } from '../web/pages.ts'
import { createTokenGate } from '../../domain/oauth/token-gate.ts'
import { answerOauth, oauthEndpoints } from '../oauth/endpoints.ts'
import { methodsOfPath } from './paths.ts'
import type { Route } from '../route.ts'
import { routes } from '../routes.ts'
import { openStream, sendEvents } from './sse.ts'

/** Calls in flight may finish this long once the server is told to close; then they are aborted. */
const CLOSE_GRACE_MS = 3 * SECOND

type Exchange = {
  id: string
  request: IncomingMessage
  response: ServerResponse
  params: unknown
  /** The address of who asks. */
  peer: string
}

/** Ready to listen; the caller of this chooses the address and closes it. */
export function createServer(app: App, limits = connectionLimits): FastifyInstance {
  const isProxy = addressMatcher(app.config.trustedProxies)
  const server = Fastify({
    trustProxy: isProxy,
    logger: false,
    genReqId: http.requestIdOf,
    requestIdHeader: false,
    exposeHeadRoutes: false,
    return503OnClosing: false,
    requestTimeout: 60 * SECOND,
    keepAliveTimeout: 75 * SECOND,
    http: { headersTimeout: limits.headersMs, connectionsCheckingInterval: limits.lookEveryMs },
    routerOptions: { maxParamLength: 200 },
    frameworkErrors: (_error, request, reply) => sendUnknownPath(begin(request, reply)),
    clientErrorHandler: refuseMalformed,
  })
  boundConnections(server.server, limits, isProxy, (peer) =>
    tellBoundMet(app, { bound: 'connections to the API', by: peer }),
  )
  const begin = (request: FastifyRequest, reply: FastifyReply) => take(app, request, reply)
  const operations = createOperations(app)
  const stopping = new AbortController()
  const isOurs = createHostCheck(app.config)
  // Before any route, and before anybody is authenticated.
  server.addHook('onRequest', (request, reply, next) => {
    if (isOurs(request.raw)) return next()
    const { id, response } = begin(request, reply)
    sendError(response, misdirected(app.config.publicUrl), id)
  })
  server.addHook('preClose', async () => {
    setTimeout(() => stopping.abort(serverStopping()), CLOSE_GRACE_MS).unref()
    // Connections that fall idle while the last calls finish would be kept for callers that may not come.
    const sweep = setInterval(() => server.server.closeIdleConnections(), 50)
    server.server.once('close', () => clearInterval(sweep))
  })

  // Calls whose callers have gone keep no connection open, and still have a row to write.
  server.addHook('onClose', async () => {
    await completesWithin(app.clock, CLOSE_GRACE_MS, operations.ended())
  })

  // Bodies stay unread here: who sends one is not known yet.
  server.removeAllContentTypeParsers()
  server.addContentTypeParser('*', (_request, _payload, done) => done(null))
  for (const route of routes) {
    const serve = (request: FastifyRequest, reply: FastifyReply) =>
      serveRoute(app, operations, route, stopping.signal, begin(request, reply))
    server.route({
      method: methodsOf(route),
      url: framePath(route.path),
      handler: serve,
      // All it can mean is a media type the framework cannot parse: the operation refuses that itself.
      errorHandler: (_error, request, reply) => void serve(request, reply),
    })
  }
  for (const page of pages) {
    server.route({
      method: page.method,
      url: framePath(page.path),
      handler: async (request, reply) =>
        await servePage(app, operations, page, stopping.signal, begin(request, reply)),
    })
  }
  const tokenGate = createTokenGate(app)
  for (const endpoint of oauthEndpoints) {
    server.route({
      method: [endpoint.method, 'OPTIONS'],
      url: endpoint.path,
      handler: async (request, reply) => {
        const { id, request: asked, response, peer } = begin(request, reply)
        await answerOauth(app, endpoint, { request: asked, response, requestId: id, peer, tokenGate })
      },
    })
  }
  const mcp = createMcpEndpoint(app, operations)
  const serveMcp = (request: FastifyRequest, reply: FastifyReply) =>
    mcp.serve({ ...begin(request, reply), stopping: stopping.signal })
  for (const url of mcpPaths) {
    server.route({
      method: [...mcpMethods],
      url,
      handler: serveMcp,
      errorHandler: (_error, request, reply) => void serveMcp(request, reply),
    })
  }
  server.setNotFoundHandler((request, reply) => sendUnknownPath(begin(request, reply)))
  server.setErrorHandler((_error, request, reply) => sendUnknownPath(begin(request, reply)))
  return server
}

/** Takes the exchange over from the framework. */
function take({ clock, observer }: App, request: FastifyRequest, reply: FastifyReply): Exchange {
  reply.hijack()
  const beganMs = clock.monotonicMs()
  const { method } = request
  const url = request.is404 ? undefined : request.routeOptions.url
  const route = url === undefined ? null : url.replace(/:(\w+)/g, '{$1}')
  reply.raw.once('close', () => {
    const status = reply.raw.writableFinished ? reply.raw.statusCode : callerGone().status
    observer.callAnswered({ method, route, status, ms: clock.monotonicMs() - beganMs })
  })
  reply.raw.setHeader('x-request-id', request.id)
  reply.raw.setHeader('x-content-type-options', 'nosniff')
  const { id, raw, params } = request
  return { id, request: raw, response: reply.raw, params, peer: peerOf(request) }
}

/** Behind trusted proxies, the last of those they name who is no proxy. What they do not name is their own call. */
function peerOf({ ip, raw }: FastifyRequest): string {
  return isIP(ip) > 0 ? ip : (raw.socket.remoteAddress ?? '')
}

/** What can be read can be asked for by HEAD, too: Node leaves out the body. Pages cannot: some of them change something. */
function methodsOf({ method }: Route): string[] {
  return method === 'GET' ? ['GET', 'HEAD'] : [method]
}

/** Parameters as the framework writes them. */
function framePath(path: string): string {
  return path.replace(/\{(\w+)\}/g, ':$1')
}

async function serveRoute(
  app: App,
  operations: Operations,
  route: Route,
  stopping: AbortSignal,
  { id, request, response, params, peer }: Exchange,
): Promise<void> {
  const gone = goneWith(response)
  const signal = AbortSignal.any([gone.signal, stopping])
  try {
    await operations.run(
      {
        ...http.senderOf(request, app.config.publicUrl),
        peer,
        requestId: id,
        route,
        params,
        query: http.queryOf(request.url ?? ''),
        readBody: () => readBody(request, route.body),
        signal,
        abort: (reason) => gone.abort(reason),
        onceAnswered: (callback) => onceClosed(response, callback),
        markReplayed: () => response.setHeader('idempotent-replayed', 'true'),
      },
      {
        json: (status, body) => sendJson(response, status, body),
        stream: async (stream) => {
          if (request.method === 'HEAD') openStream(response).end()
          else await sendEvents(response, stream, { clock: app.clock, signal, requestId: id })
        },
      },
    )
  } catch (error) {
    logError(app.log, error, id)
    sendError(response, toAppError(error), id)
  }
}

async function servePage(
  app: App,
  operations: Operations,
  page: Page,
  stopping: AbortSignal,
  { id, request, response, params, peer }: Exchange,
): Promise<void> {
  const gone = goneWith(response)
  const perform: PageRequest['perform'] = async (route, routeParams, body) => {
    let answered: unknown = null
    await operations.run(
      {
        ...http.senderOf(request, app.config.publicUrl),
        peer,
        requestId: id,
        route,
        params: routeParams,
        query: {},
        // The form's fields are the page's: it says what of them is the operation's.
        readBody: async () => (body === undefined ? Buffer.alloc(0) : Buffer.from(JSON.stringify(body))),
        signal: AbortSignal.any([gone.signal, stopping]),
        abort: (reason) => gone.abort(reason),
        onceAnswered: (callback) => onceClosed(response, callback),
        markReplayed: () => {},
      },
      {
        json: (_status, body) => {
          answered = body
        },
        stream: async () => {
          throw new TypeError('a page shows no streams')
        },
      },
    )
    return answered
  }
  await answerPage(app, page, request, response, {
    requestId: id,
    peer,
    params: z.record(z.string(), z.string()).parse(params),
    perform,
  })
}

function goneWith(response: ServerResponse): AbortController {
  const gone = new AbortController()
  response.once('close', () => {
    if (!response.writableFinished) gone.abort(callerGone())
  })
  return gone
}

function onceClosed(response: ServerResponse, callback: () => void): void {
  if (response.closed) callback()
  else response.once('close', callback)
}

function sendUnknownPath({ id, request, response }: Exchange): void {
  const [path = ''] = (request.url ?? '').split('?')
  const shown = path.slice(0, 200)
  const ofRoutes = routes.flatMap((route) => methodsOf(route).map((method) => ({ method, path: route.path })))
  const ofMcp = mcpMethods.flatMap((method) => mcpPaths.map((url) => ({ method, path: url })))
  const allowed = methodsOfPath([...ofRoutes, ...ofMcp, ...pages, ...oauthEndpoints], path)
  // A path of ours that holds bytes which are no text got here too.
  if (allowed.length === 0 || allowed.includes(request.method ?? '')) {
    sendError(response, new AppError('not_found', 404, `There is nothing at ${shown}.`), id)
    return
  }
  const message = `${shown} has no ${request.method}, only ${allowed.join(', ')}.`
  sendError(response, new AppError('method_not_allowed', 405, message), id, { allow: allowed.join(', ') })
}
