// A visit to a unit, from its request to its answer. The order is the rule: which endpoint, may the visitor use
// it, is there room, does its unit run; then the request is passed on.

import { Http2ServerResponse } from 'node:http2'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { createSingleFlight, type SingleFlight } from '../lib/single-flight.ts'
import { type EndpointLabel, parseEndpointLabel } from '../contract/endpoint-label.ts'
import { breakOff, dropRest, type Exchange, isHttp2, type Response } from './exchange.ts'
import { type AskedHost, readHost } from './host.ts'
import { createOpenVisits, type OpenVisits, type Visit } from './open-visits.ts'
import { type Outcome, sayOf } from './outcomes.ts'
import { pageOf } from './pages.ts'
import { opens } from './private-link.ts'
import { type Forwarded, forward } from './proxy-http.ts'
import { createShare, type Share } from './resolver-limits.ts'
import type { Activity, Route, Routes, WakeOutcome, Waker } from './route.ts'
import { createUnitConnections, type UnitConnections } from './unit-connections.ts'
import type { VisitLimits } from './visit-limits.ts'

export type VisitingOptions = {
  /** In lower case. */
  domain: string
  routes: Routes
  waker: Waker
  activity: Activity
  limits: VisitLimits
  clock: Clock
  log: Log
}

/** What every visit is served with. */
export type Visiting = VisitingOptions & {
  visits: OpenVisits
  connections: UnitConnections
  wakes: SingleFlight<WakeOutcome>
  /** Visits that wait for a unit to wake. */
  waiting: Share
}

export function createVisiting(options: VisitingOptions): Visiting {
  const { waker, limits, clock } = options
  const connections = createUnitConnections()
  const wakes = createSingleFlight<WakeOutcome>(clock)
  const visits = createOpenVisits({
    ...options,
    // Nobody waits for this one: the bytes that asked for it are on their way already.
    wake: (route) => void startWake({ wakes, waker, limits }, route).catch(() => {}),
    forgetUnit: (unitId) => connections.forget(unitId),
  })
  const waiting = createShare(limits.visits, limits.waitingPerUnit)
  return { ...options, visits, connections, wakes, waiting }
}

type Done = { kind: 'over' }

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

async function serve(visiting: Visiting, exchange: Exchange, visit: Visit): Promise<Outcome | Done> {
  const asked = readHost(exchange.head.host, visiting.domain)
  if (asked.kind === 'malformed') return { kind: 'malformed' }
  if (isMisdirected(visiting, exchange, asked)) return { kind: 'misdirected' }
  const label = asked.kind === 'label' ? parseEndpointLabel(asked.label) : null
  if (!label) return { kind: 'unknown' }
  let route: Route | null
  try {
    route = await findOpen(visiting, label)
  } catch {
    return { kind: 'unsure' }
  }
  if (!route) return { kind: 'unknown' }
  visit.name = label.name
  if (!visiting.visits.enterUnit(visit, route)) return { kind: 'too-many' }
  return reach(visiting, exchange, visit, label, route)
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

/** The route, if whoever asks may use it. An endpoint of another protocol is none for HTTP. */
async function findOpen({ routes }: Visiting, label: EndpointLabel): Promise<Route | null> {
  const route = await routes.find(label.name)
  return route?.protocol === 'http' && opens(route, label.secret) ? route : null
}

/**
 * Passes the request on as soon as the unit takes it. A unit that refuses connections is tried for a while: its
 * server may be about to listen, and what the route said may have changed a moment ago.
 */
async function reach(
  visiting: Visiting,
  exchange: Exchange,
  visit: Visit,
  label: EndpointLabel,
  found: Route,
): Promise<Outcome | Done> {
  const { clock, limits } = visiting
  const begunMs = clock.monotonicMs()
  let patienceMs = limits.refusingMs.running
  let route: Route | null = found
  let isStale = false
  for (let pauseMs = 20; ; pauseMs = Math.min(pauseMs * 2, 250)) {
    const slept: boolean = route.state !== 'running'
    const woken = await wake(visiting, visit, route)
    if (woken.kind !== 'running') return woken
    if (slept) patienceMs = limits.refusingMs.woken
    const forwarded = await pass(visiting, exchange, visit, woken.route)
    if (visit.isGone) return { kind: 'over' }
    if (forwarded.kind === 'stale') {
      if (isStale) return { kind: 'broke' }
      isStale = true
      continue
    }
    if (forwarded.kind !== 'refused-connection') return forwarded
    visiting.waker.doubt(route.unitId)
    if (clock.monotonicMs() - begunMs >= patienceMs) return { kind: 'not-listening', port: route.port }
    await clock.sleep(pauseMs)
    route = await findOpen(visiting, label)
    if (!route) return { kind: 'unknown' }
  }
}

async function pass(
  { connections, activity }: Visiting,
  exchange: Exchange,
  visit: Visit,
  route: Route,
): Promise<Forwarded> {
  // Node would take no address for its own host's (reliability I27).
  if (route.address === null) return { kind: 'refused-connection' }
  visit.route = route
  const end = activity.begin(route.unitId)
  let isUsed = true
  visit.endUse = () => {
    if (isUsed) end()
    isUsed = false
  }
  const forwarded = await forward(exchange, visit, route, connections.agentFor(route))
  visit.endUse()
  visit.route = null
  return forwarded
}

/** The run to go to. Each visit waits no longer than it wants to, whatever becomes of the wake. */
async function wake(
  visiting: Visiting,
  visit: Visit,
  route: Route,
): Promise<WakeOutcome | { kind: 'too-many' } | Done> {
  const { waker, waiting } = visiting
  const awake = waker.awake(route)
  if (awake) return { kind: 'running', route: awake }
  if (!waiting.enter(route.unitId)) return { kind: 'too-many' }
  visit.enter('waking')
  const later: WakeOutcome = { kind: 'waiting', retryAfterS: 2 }
  try {
    return await new Promise<WakeOutcome | Done>((resolve) => {
      visit.onCut = (why) => resolve(why.kind === 'gone' ? { kind: 'over' } : later)
      startWake(visiting, route).then(resolve, () => resolve(later))
    })
  } finally {
    waiting.leave(route.unitId)
  }
}

/** However many visits wait for a unit, it is woken once. */
function startWake(
  { wakes, waker, limits }: Pick<Visiting, 'wakes' | 'waker' | 'limits'>,
  route: Route,
): Promise<WakeOutcome> {
  return wakes.run(route.unitId, limits.patienceMs.waking, () => waker.wake(route))
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
      visit.onCut = () => {
        breakOff(exchange)
        resolve()
      }
    }
    response.writeHead(page.status, page.headers)
    // Many clients read no answer before they have sent all of their body: it is dropped for a while.
    if (isLeft) void dropRest(exchange).then(resolve)
    else response.once('close', resolve)
    response.end(page.body)
  })
}

/** To a request that no visit can be made of. Who sent it is not waited for. */
export function sayMalformed(response: Response): void {
  const { status, headers, body } = pageOf(sayOf({ kind: 'malformed' }), { acceptsHtml: false })
  if (!(response instanceof Http2ServerResponse)) headers.push('connection', 'close')
  response.writeHead(status, headers)
  response.end(body)
}
