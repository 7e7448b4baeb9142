// The HTTP server: request ids, routing, and every answer in the contract's shape. The only file that imports the
// framework, which only listens and routes. operation.ts reads the body, once the caller is authenticated.

import { isIP } from 'node:net'
import Fastify, {
  type HTTPMethods,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify'
import type { App } from '../app.ts'
import { AppError } from '../contract/errors.ts'
import { addressMatcher } from '../lib/address-ranges.ts'
import { SECOND } from '../lib/clock.ts'
import { logLimitReached } from '../lib/limit-reached.ts'
import { completesWithin } from '../lib/concurrency/completes-within.ts'
import { boundArrival, longestArrivalMs } from './http/arrival.ts'
import { createUpgrades } from './upgrades.ts'
import { createHostCheck, misdirected } from './http/hosts.ts'
import { boundConnections, connectionLimits } from './http/connections.ts'
import { callerGone, serverStopping } from './http/errors.ts'
import { refuseMalformed, sendError } from './http/response.ts'
import * as http from './http/request.ts'
import { createDocsEndpoint, docsMethods, docsPaths } from './docs/endpoint.ts'
import { createDownloads, downloadMethods, downloadPaths } from './downloads/endpoint.ts'
import { openPackages } from './downloads/packages.ts'
import { comesSlowly, createE2bEndpoint, E2B_PATHS, e2bMethods } from './e2b/endpoint.ts'
import { createMcpEndpoint, mcpMethods, mcpPaths } from './mcp/endpoint.ts'
import { createPortsEndpoint, PORT_PATHS, portMethods } from './ports/endpoint.ts'
import { openProtocol } from './mcp/protocol.ts'
import type { Protocol } from './mcp/transport.ts'
import { createOperations } from './operation.ts'
import { acceptsHtml, pages, sendErrorPage } from './web/pages.ts'
import { type Dashboard, readDashboard, sendAsset } from './web/dashboard.ts'
import { createTokenGate } from '../domain/oauth/token-gate.ts'
import { answerOauth, oauthEndpoints } from './oauth/endpoints.ts'
import { methodsOfPath } from './http/paths.ts'
import type { Route } from './route.ts'
import { routes } from './routes.ts'
import { type Exchange, serveDashboardPage, servePage, serveRoute } from './serve.ts'

/** Of routes whose bodies come for as long as they are worked on. */
const longRoutes = new Set(
  routes
    .filter(({ body }) => body.kind === 'stream')
    .map(({ method, path }) => `${method} ${framePath(path)}`),
)

/** How long calls in progress may go on after the server is told to close; then they are aborted. */
const CLOSE_GRACE_MS = 3 * SECOND

/**
 * Returns a server that is ready to listen; the caller chooses the address and closes it. `openMcp` loads what answers at
 * /mcp. Without a built dashboard it serves everything else.
 */
export function createServer(
  app: App,
  limits = connectionLimits,
  openMcp: () => Promise<Protocol> = openProtocol,
  dashboard: Dashboard | null = readDashboard(),
  packages: typeof openPackages = openPackages,
): FastifyInstance {
  const isProxy = addressMatcher(app.config.trustedProxies)
  const server = Fastify({
    // Only the gateway of this host connects without an address (door-socket.ts).
    trustProxy: (address: string | undefined) => address === undefined || isProxy(address),
    logger: false,
    genReqId: http.requestIdOf,
    requestIdHeader: false,
    exposeHeadRoutes: false,
    return503OnClosing: false,
    requestTimeout: longestArrivalMs,
    keepAliveTimeout: 75 * SECOND,
    http: {
      headersTimeout: limits.headersMs,
      connectionsCheckingInterval: limits.lookEveryMs,
      // A request for any other protocol, or on any other path, is answered as if it asked for none.
      shouldUpgradeCallback: (request) => upgrades.isWanted(request),
    },
    routerOptions: { maxParamLength: 200 },
    frameworkErrors: (_error, request, reply) => sendUnknownPath(begin(request, reply)),
    clientErrorHandler: refuseMalformed,
  })
  boundConnections(server.server, limits, isProxy, (peer) =>
    logLimitReached(app, { bound: 'connections to the API', by: peer }),
  )
  const begin = (request: FastifyRequest, reply: FastifyReply) => {
    const exchange = take(app, request, reply)
    if (dashboard) exchange.response.setHeader('x-berth-dashboard', dashboard.build)
    return exchange
  }
  const operations = createOperations(app)
  const stopping = new AbortController()
  const isOurs = createHostCheck(app.config)
  const upgrades = createUpgrades({
    app,
    operations,
    routes,
    isOurs,
    peerOf: (request) => http.peerBehind(request, isProxy),
    stopping: stopping.signal,
  })
  server.server.on('upgrade', upgrades.accept)
  server.addHook('onRequest', (request, _reply, next) => {
    const { url } = request.routeOptions
    const isLong = longRoutes.has(`${request.method} ${url}`) || url === PORT_PATHS
    if (!isLong && !comesSlowly(request.url)) boundArrival(request.raw)
    next()
  })
  // Before any route, and before authentication.
  server.addHook('onRequest', (request, reply, next) => {
    if (isOurs(request.raw)) return next()
    const { id, response } = begin(request, reply)
    sendError(response, misdirected(app.config.publicUrl), id)
  })
  server.addHook('preClose', async () => {
    setTimeout(() => stopping.abort(serverStopping()), CLOSE_GRACE_MS).unref()
    // A connection that outlives its calls must not keep the server from closing.
    setTimeout(() => server.server.closeAllConnections(), CLOSE_GRACE_MS + 2 * SECOND).unref()
    // Otherwise connections that become idle while the last calls finish would stay open.
    const sweep = setInterval(() => server.server.closeIdleConnections(), 50)
    server.server.once('close', () => clearInterval(sweep))
  })

  // Calls whose clients have disconnected hold no connection open, and still write an audit row.
  server.addHook('onClose', async () => {
    await completesWithin(app.clock, CLOSE_GRACE_MS, operations.ended())
  })

  // Bodies are read later, once the caller is authenticated.
  server.removeAllContentTypeParsers()
  server.addContentTypeParser('*', (_request, _payload, done) => done(null))
  for (const route of routes) {
    const serve = (request: FastifyRequest, reply: FastifyReply) =>
      serveRoute(app, operations, route, stopping.signal, begin(request, reply))
    server.route({
      method: methodsOf(route),
      url: framePath(route.path),
      handler: serve,
      // The framework only reports a media type it cannot parse: the operation refuses that itself.
      errorHandler: (_error, request, reply) => void serve(request, reply),
    })
  }
  for (const page of pages) {
    server.route({
      method: page.method,
      url: framePath(page.path),
      handler: async (request, reply) =>
        await servePage(app, operations, page, stopping.signal, dashboard !== null, begin(request, reply)),
    })
  }
  if (dashboard)
    serveDashboard(server, dashboard, begin, (exchange) =>
      serveDashboardPage(app, operations, dashboard, stopping.signal, exchange),
    )
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
  const serveAt = (
    urls: readonly string[],
    methods: readonly HTTPMethods[],
    endpoint: { serve: (asked: Exchange & { stopping: AbortSignal }) => Promise<void> },
  ) => {
    const serve = (request: FastifyRequest, reply: FastifyReply) =>
      endpoint.serve({ ...begin(request, reply), stopping: stopping.signal })
    for (const url of urls) {
      const errorHandler = (_error: unknown, request: FastifyRequest, reply: FastifyReply) =>
        void serve(request, reply)
      server.route({ method: [...methods], url, handler: serve, errorHandler })
    }
  }
  serveAt(mcpPaths, mcpMethods, createMcpEndpoint(app, operations, openMcp))
  serveAt([E2B_PATHS], e2bMethods, createE2bEndpoint(app, operations))
  serveAt([PORT_PATHS], portMethods, createPortsEndpoint(app, operations))
  const docs = createDocsEndpoint(app)
  for (const url of docsPaths) {
    server.route({
      method: [...docsMethods],
      url,
      handler: (request, reply) => docs.serve(begin(request, reply)),
    })
  }
  const downloads = createDownloads(app, packages)
  server.addHook('onClose', async () => await downloads.close())
  for (const url of downloadPaths) {
    server.route({
      method: [...downloadMethods],
      url,
      handler: (request, reply) => downloads.serve(begin(request, reply)),
    })
  }
  server.setNotFoundHandler((request, reply) => sendUnknownPath(begin(request, reply)))
  server.setErrorHandler((_error, request, reply) => sendUnknownPath(begin(request, reply)))
  return server
}

/** Its files, and its page for whatever a browser opens below /t. `servePage` sends it. */
function serveDashboard(
  server: FastifyInstance,
  dashboard: Dashboard,
  begin: (request: FastifyRequest, reply: FastifyReply) => Exchange,
  servePage: (exchange: Exchange) => Promise<void>,
): void {
  for (const url of ['/t', '/t/*'])
    server.get(url, async (asked, reply) => {
      const exchange = begin(asked, reply)
      if (acceptsHtml(exchange.request)) await servePage(exchange)
      else sendUnknownPath(exchange)
    })
  server.get('/assets/*', (asked, reply) => {
    const exchange = begin(asked, reply)
    if (!sendAsset(dashboard, exchange.request, exchange.response)) sendUnknownPath(exchange)
  })
}

/** Takes the request and the response out of the framework's hands. */
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

/**
 * Behind trusted proxies, the last forwarded address that is not a proxy. A request with no forwarded address comes
 * from the proxy itself.
 */
function peerOf({ ip, raw }: FastifyRequest): string {
  return isIP(ip) > 0 ? ip : (raw.socket.remoteAddress ?? '')
}

/**
 * Every GET route also answers HEAD: Node leaves out the body. Pages do not, because some of them change something.
 */
function methodsOf({ method }: Route): string[] {
  return method === 'GET' ? ['GET', 'HEAD'] : [method]
}

/** Writes parameters in the framework's syntax. */
function framePath(path: string): string {
  return path.replace(/\{(\w+)\}/g, ':$1')
}

function sendUnknownPath({ id, request, response }: Exchange): void {
  const [path = ''] = (request.url ?? '').split('?')
  const shown = path.slice(0, 200)
  const ofRoutes = routes.flatMap((route) => methodsOf(route).map((method) => ({ method, path: route.path })))
  const ofMcp = mcpMethods.flatMap((method) => mcpPaths.map((url) => ({ method, path: url })))
  // A person who mistyped an address reads a page.
  const isPerson = request.method === 'GET' && acceptsHtml(request) && !path.startsWith('/v1/')
  const refuse = (error: AppError, headers: Record<string, string> = {}) =>
    (isPerson ? sendErrorPage : sendError)(response, error, id, headers)
  const allowed = methodsOfPath([...ofRoutes, ...ofMcp, ...pages, ...oauthEndpoints], path)
  // A known path with bytes that are not UTF-8 also gets here.
  if (allowed.length === 0 || allowed.includes(request.method ?? '')) {
    refuse(new AppError('not_found', 404, `The path ${shown} does not exist.`))
    return
  }
  const message = `The path ${shown} does not allow ${request.method}, only ${allowed.join(', ')}.`
  refuse(new AppError('method_not_allowed', 405, message), { allow: allowed.join(', ') })
}
