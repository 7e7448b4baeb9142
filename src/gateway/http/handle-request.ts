// A visit to a unit, from its request to its answer. The order is the rule: which endpoint, may the visitor use
// it, is there room, does its unit run; then the request is passed on.

import { Http2ServerResponse } from 'node:http2'
import { parseEndpointLabel } from '../../contract/endpoint-label.ts'
import { breakOff, dropRest, type Exchange, isHttp2, type Response } from './exchange.ts'
import { type AskedHost, readHost } from '../routing/requested-host.ts'
import type { Visit } from '../sessions/open-sessions.ts'
import { type Outcome, sayOf } from '../sessions/outcomes.ts'
import { pageOf } from './pages.ts'
import { type Forwarded, forward } from './proxy-request.ts'
import type { Route } from '../routing/route.ts'
import {
  beginUse,
  type Done,
  findOpen,
  reach,
  type Visiting,
  wakeIfAsleep,
} from '../sessions/connect-to-unit.ts'

/** Answers the request whatever becomes of it, and never rejects. */
export async function receive(visiting: Visiting, exchange: Exchange, peer: string): Promise<void> {
  const visit = visiting.visits.begin(peer)
  if (!visit) return say(exchange, { kind: 'too-many' }, null)
  exchange.response.once('close', () => {
    // HTTP/1.1 lets go of an answer once it is sent, whatever is left of the request.
    if (isHttp2(exchange.request) || !exchange.response.writableFinished) visit.cut({ kind: 'gone' })
  })
  try {
    const outcome = await serve(visiting, exchange, visit)
    if (outcome.kind !== 'over') await say(exchange, outcome, visit)
  } catch (error) {
    // Nothing of the request: what a visitor sends must not reach a log line.
    visiting.log.error({ err: error, unitId: visit.route?.unitId }, 'gateway: a visit failed')
    if (exchange.response.headersSent) breakOff(exchange)
    else await say(exchange, { kind: 'broke' }, visit)
  } finally {
    visiting.visits.end(visit)
  }
}

/** An endpoint of another protocol is none for HTTP. */
const isHttp = ({ protocol }: Route) => protocol === 'http'

async function serve(visiting: Visiting, exchange: Exchange, visit: Visit): Promise<Outcome | Done> {
  const asked = readHost(exchange.head.host, visiting.domain)
  if (asked.kind === 'malformed') return { kind: 'malformed' }
  if (isMisdirected(visiting, exchange, asked)) return { kind: 'misdirected' }
  const label = asked.kind === 'label' ? parseEndpointLabel(asked.label) : null
  if (!label) return { kind: 'unknown' }
  let route: Route | null
  try {
    route = await findOpen(visiting, label, isHttp)
  } catch {
    return { kind: 'unsure' }
  }
  if (!route) return { kind: 'unknown' }
  visit.name = label.name
  if (!visiting.visits.enterUnit(visit, route)) return { kind: 'too-many' }
  const { refusingMs } = visiting.limits
  const wanted = { visit, label, isMeant: isHttp, refusingMs }
  return await reach(visiting, wanted, route, (run) => pass(visiting, exchange, visit, run))
}

/**
 * Browsers use one connection for all names its certificate is good for. One that greeted us as a visitor of a
 * certain unit is for that unit alone.
 */
function isMisdirected({ domain }: Visiting, { serverName }: Exchange, asked: AskedHost): boolean {
  const greeted = serverName === null ? null : readHost(serverName, domain)
  if (greeted?.kind !== 'label') return false
  return asked.kind !== 'label' || asked.label !== greeted.label
}

async function pass(visiting: Visiting, exchange: Exchange, visit: Visit, route: Route): Promise<Forwarded> {
  // Node would take no address for its own host's (reliability I27).
  if (route.address === null) return { kind: 'refused-connection' }
  visit.route = route
  visit.endUse = beginUse(visiting, route)
  visit.onSaid = (_chunk, said) => {
    if (said !== 'nothing') wakeIfAsleep(visiting, route)
  }
  const forwarded = await forward(exchange, visit, route, visiting.connections.agentFor(route))
  visit.endUse()
  visit.route = null
  return forwarded
}

// The gateway's own answers

/** Resolves once the visitor has the answer, or nobody waits for it any more. */
function say(exchange: Exchange, outcome: Outcome, visit: Visit | null): Promise<void> {
  const { request, response, hasBody, expectsContinue, head } = exchange
  if (visit?.isGone || response.headersSent) return Promise.resolve()
  const said = sayOf(outcome)
  const page = pageOf(said, head)
  const closes = said.closes || expectsContinue
  if (closes && !isHttp2(request)) page.headers.push('connection', 'close')
  const isLeft = hasBody && !request.complete && !closes
  return new Promise((resolve) => {
    if (visit) {
      visit.enter('leftover')
      visit.whenCut(() => {
        breakOff(exchange)
        resolve()
      })
    }
    response.writeHead(page.status, page.headers)
    // Many clients read no answer before they have sent all of their body: it is dropped for a while.
    if (isLeft) void dropRest(exchange).then(resolve)
    else response.once('close', resolve)
    response.end(page.body)
  })
}

/** To a request that no visit can be made of. Who sent it is not waited for. */
export function sayAtOnce(response: Response, outcome: Outcome): void {
  const { status, headers, body } = pageOf(sayOf(outcome), { acceptsHtml: false })
  if (!(response instanceof Http2ServerResponse)) headers.push('connection', 'close')
  response.writeHead(status, headers)
  response.end(body)
}
