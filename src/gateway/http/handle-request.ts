// Handles a visit to a unit, from its request to its response, in this order: which endpoint, may the visitor use it,
// is there room, does its unit run; then the request is proxied.

import { Http2ServerResponse } from 'node:http2'
import { type EndpointLabel, parseEndpointLabel } from '../../contract/endpoint-label.ts'
import { abortExchange, discardBody, type Exchange, isHttp2, type Response } from './exchange.ts'
import { readDoorHost, serveDoorHost } from './door.ts'
import { type RequestedHost, readHost } from '../routing/requested-host.ts'
import type { Session } from '../sessions/open-sessions.ts'
import { type Outcome, errorMessageOf } from '../sessions/outcomes.ts'
import { pageOf } from './pages.ts'
import { doorOf, passToHost } from './pass-to-host.ts'
import { proxyRequest } from './proxy-request.ts'
import type { ProxyResult } from './proxy-result.ts'
import type { Route } from '../route.ts'
import {
  beginUse,
  type Closed,
  findAuthorizedRoute,
  connectWithRetry,
  type GatewayContext,
  wakeIfAsleep,
} from '../sessions/connect-to-unit.ts'

/** Always answers the request, and never rejects. */
export async function handleRequest(
  context: GatewayContext,
  exchange: Exchange,
  peer: string,
): Promise<void> {
  const session = context.sessions.begin(peer)
  if (!session) return say(exchange, { kind: 'too-many' }, null)
  exchange.response.once('close', () => {
    // HTTP/1.1 releases a response once it is sent, even if the rest of the request is missing.
    if (isHttp2(exchange.request) || !exchange.response.writableFinished) session.cut({ kind: 'gone' })
  })
  try {
    const outcome = await serve(context, exchange, session)
    if (outcome.kind !== 'closed') await say(exchange, outcome, session)
  } catch (error) {
    // Nothing of the request is logged, because a visitor chose it.
    context.log.error({ err: error, unitId: session.route?.unitId }, 'gateway: a session failed')
    if (exchange.response.headersSent) abortExchange(exchange)
    else await say(exchange, { kind: 'bad-gateway' }, session)
  } finally {
    context.sessions.end(session)
  }
}

/** An endpoint of another protocol does not exist for HTTP. */
const isHttp = ({ protocol }: Route) => protocol === 'http'

async function serve(
  context: GatewayContext,
  exchange: Exchange,
  session: Session,
): Promise<Outcome | Closed> {
  if (exchange.portName !== null)
    return await serveLabel(context, exchange, session, { name: exchange.portName, secret: null })
  const asked = readHost(exchange.head.host, context.domain)
  if (asked.kind === 'malformed') return { kind: 'malformed' }
  if (isMisdirected(context, exchange, asked)) return { kind: 'misdirected' }
  const doorHost = asked.kind === 'label' ? readDoorHost(asked.label) : null
  if (doorHost)
    return await serveDoorHost(context, exchange, session, doorHost, (asked, run) =>
      pass(context, asked, session, run),
    )
  const label = asked.kind === 'label' ? parseEndpointLabel(asked.label) : null
  return label ? await serveLabel(context, exchange, session, label) : { kind: 'unknown' }
}

async function serveLabel(
  context: GatewayContext,
  exchange: Exchange,
  session: Session,
  label: EndpointLabel,
): Promise<Outcome | Closed> {
  let route: Route | null
  try {
    route = await findAuthorizedRoute(context, label, isHttp)
  } catch {
    return { kind: 'routing-unavailable' }
  }
  if (!route) return { kind: 'unknown' }
  const door = doorOf(context, exchange, route)
  if (door) return await passToHost(context, exchange, session, { route, door })
  session.name = label.name
  if (!context.sessions.enterUnit(session, route)) return { kind: 'too-many' }
  const { refusingMs } = context.limits
  const target = { session, label, isMeant: isHttp, refusingMs }
  return await connectWithRetry(context, target, route, (run) => pass(context, exchange, session, run))
}

/**
 * Browsers reuse one connection for all names that its certificate covers. A connection whose server name was one
 * unit's is only for that unit.
 */
function isMisdirected({ domain }: GatewayContext, { serverName }: Exchange, asked: RequestedHost): boolean {
  const greeted = serverName === null ? null : readHost(serverName, domain)
  if (greeted?.kind !== 'label') return false
  return asked.kind !== 'label' || asked.label !== greeted.label
}

async function pass(
  context: GatewayContext,
  exchange: Exchange,
  session: Session,
  route: Route,
): Promise<ProxyResult> {
  // Node would take an absent address for its own host (reliability I27).
  if (route.address === null) return { kind: 'refused-connection' }
  session.route = route
  session.endUse = beginUse(context, route)
  session.onClientBytes = (_chunk, said) => {
    if (said !== 'nothing') wakeIfAsleep(context, route)
  }
  const forwarded = await proxyRequest(exchange, session, route, context.connections.of(route))
  session.endUse()
  session.route = null
  return forwarded
}

// Responses of the gateway itself

/** Tells the server that this answer is no unit's. No answer of a unit has it (response-head.ts). */
const OUTCOME_HEADER = 'x-berth-outcome'

/** Resolves once the visitor has the response, or has disconnected. */
function say(exchange: Exchange, outcome: Outcome, session: Session | null): Promise<void> {
  const { request, response, hasBody, expectsContinue, head } = exchange
  if (session?.isGone || response.headersSent) return Promise.resolve()
  const said = errorMessageOf(outcome)
  const page = pageOf(said, head)
  if (exchange.portName !== null) page.headers.push(OUTCOME_HEADER, said.code)
  const closes = said.closes || expectsContinue
  if (closes && !isHttp2(request)) page.headers.push('connection', 'close')
  const isLeft = hasBody && !request.complete && !closes
  return new Promise((resolve) => {
    if (session) {
      session.enter('leftover')
      session.onCut(() => {
        abortExchange(exchange)
        resolve()
      })
    }
    response.writeHead(page.status, page.headers)
    // Many clients read no response before they have sent their whole body: it is dropped for a while.
    if (isLeft) void discardBody(exchange).then(resolve)
    else response.once('close', resolve)
    response.end(page.body)
  })
}

/** For a request that cannot become a visit. Does not wait for its sender. */
export function sendErrorAtOnce(response: Response, outcome: Outcome): void {
  const { status, headers, body } = pageOf(errorMessageOf(outcome), { acceptsHtml: false })
  if (!(response instanceof Http2ServerResponse)) headers.push('connection', 'close')
  response.writeHead(status, headers)
  response.end(body)
}
