// What every visit takes to its unit, over HTTP or another protocol: which endpoint it is for and whether it may
// use it, a wake where that is needed, and an attempt to pass it on, again while the unit is not ready for it.

import { tellBoundMet } from '../../lib/bound-met.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { createSingleFlight, type SingleFlight } from '../../lib/concurrency/single-flight.ts'
import type { EndpointLabel } from '../../contract/endpoint-label.ts'
import type { EndpointPorts } from '../listen/endpoint-ports.ts'
import { createMysqlSessions, type MysqlSessions } from '../tcp/mysql/kill.ts'
import { createOpenSessions, type OpenSessions, type Session } from './open-sessions.ts'
import type { Outcome } from './outcomes.ts'
import { type CancelKeys, createCancelKeys } from '../tcp/postgres/cancel.ts'
import { isAuthorized } from '../routing/private-link.ts'
import { createConcurrencyLimit, type ConcurrencyLimit } from '../../lib/concurrency/concurrency-limit.ts'
import type { Activity, Route, Routes, WakeOutcome, Waker } from '../routing/route.ts'
import { createUnitConnections, type UnitConnections } from '../http/unit-connections.ts'
import type { SessionLimits } from './session-limits.ts'

export type GatewayContextOptions = {
  /** In lower case. */
  domain: string
  /** Of endpoints that are found by them. */
  ports: EndpointPorts
  routes: Routes
  waker: Waker
  activity: Activity
  limits: SessionLimits
  clock: Clock
  log: Log
}

/** What every visit is served with. */
export type GatewayContext = GatewayContextOptions & {
  sessions: OpenSessions
  connections: UnitConnections
  wakes: SingleFlight<WakeOutcome>
  /** Visits that wait for a unit to wake. */
  waiting: ConcurrencyLimit
  cancelKeys: CancelKeys
  mysqlSessions: MysqlSessions
}

export function createGatewayContext(options: GatewayContextOptions): GatewayContext {
  const { waker, limits, clock } = options
  const connections = createUnitConnections()
  const wakes = createSingleFlight<WakeOutcome>(clock)
  const sessions = createOpenSessions({
    ...options,
    // Nobody waits for this one: the bytes that asked for it are on their way already.
    wake: (route) => void startWake({ wakes, waker, limits }, route).catch(() => {}),
    forgetUnit: (unitId) => connections.forget(unitId),
  })
  const waiting = createConcurrencyLimit(limits.visits, limits.waitingPerUnit)
  const known = { cancelKeys: createCancelKeys(), mysqlSessions: createMysqlSessions() }
  return { ...options, sessions, connections, wakes, waiting, ...known }
}

/** Nobody waits for an answer any more, or it has been given. */
export type Closed = { kind: 'closed' }

/** What an attempt to pass a visit on can come to, besides its own end. */
export type Unready = { kind: 'refused-connection' } | { kind: 'stale' }

/** Whom a visit is for: the label it was made to, and whether an endpoint there is one of its kind. */
export type Target = {
  session: Session
  label: EndpointLabel
  isMeant: (route: Route) => boolean
  /** For how long the unit may refuse it. */
  refusingMs: SessionLimits['refusingMs']
}

/** The route, if there is one of this kind and whoever asks may use it. Rejects when nobody knows. */
export async function findAuthorizedRoute(
  { routes }: Pick<GatewayContext, 'routes'>,
  label: EndpointLabel,
  isMeant: (route: Route) => boolean,
): Promise<Route | null> {
  const route = await routes.find(label.name)
  return route && isMeant(route) && isAuthorized(route, label.secret) ? route : null
}

/**
 * Passes the visit on as soon as the unit takes it. A unit that refuses connections is tried for a while: its
 * server may be about to listen, and what the route said may have changed a moment ago.
 */
export async function connectWithRetry<T extends Outcome | Closed>(
  context: GatewayContext,
  { session, label, isMeant, refusingMs }: Target,
  found: Route,
  attempt: (run: Route) => Promise<T | Unready>,
): Promise<T | Outcome | Closed> {
  const { clock } = context
  const begunMs = clock.monotonicMs()
  let patienceMs = refusingMs.running
  let route: Route | null = found
  let isStale = false
  for (let pauseMs = 20; ; pauseMs = Math.min(pauseMs * 2, 250)) {
    const slept: boolean = route.state !== 'running'
    const woken = await wake(context, session, route)
    if (woken.kind !== 'running') return woken
    if (slept) patienceMs = refusingMs.woken
    const outcome = await attempt(woken.route)
    if (session.isGone) return { kind: 'closed' }
    if (outcome.kind === 'stale') {
      if (isStale) return { kind: 'bad-gateway' }
      isStale = true
      continue
    }
    if (outcome.kind !== 'refused-connection') return outcome
    context.waker.invalidateLease(route.unitId)
    if (clock.monotonicMs() - begunMs >= patienceMs) return { kind: 'not-listening', port: route.port }
    await clock.sleep(pauseMs)
    route = await findAuthorizedRoute(context, label, isMeant)
    if (!route) return { kind: 'unknown' }
  }
}

/** The visit uses the unit from now on, until the function it answers is called; again does no harm. */
export function beginUse(
  { activity }: Pick<GatewayContext, 'activity'>,
  { unitId, endpointId }: Route,
): () => void {
  const end = activity.begin(unitId, endpointId)
  let isUsed = true
  return () => {
    if (isUsed) end()
    isUsed = false
  }
}

/** On a connection that was quiet for long the unit may have fallen asleep: what has come for it wakes it at once. */
export function wakeIfAsleep(context: GatewayContext, run: Route): void {
  if (!context.waker.findLease(run)) void startWake(context, run).catch(() => {})
}

/** The run to go to. Each visit waits no longer than it wants to, whatever becomes of the wake. */
async function wake(
  context: GatewayContext,
  session: Session,
  route: Route,
): Promise<WakeOutcome | { kind: 'too-many' } | Closed> {
  const { waker, waiting } = context
  const awake = waker.findLease(route)
  if (awake) return { kind: 'running', route: awake }
  if (!waiting.tryAcquire(route.unitId)) {
    tellBoundMet(context, { bound: 'visits that wait for one unit', by: route.unitId })
    return { kind: 'too-many' }
  }
  session.enter('waking')
  const later: WakeOutcome = { kind: 'waiting', retryAfterS: 2 }
  try {
    return await new Promise<WakeOutcome | Closed>((resolve) => {
      session.onCut((why) => resolve(why.kind === 'gone' ? { kind: 'closed' } : later))
      startWake(context, route).then(resolve, () => resolve(later))
    })
  } finally {
    waiting.release(route.unitId)
  }
}

/** However many visits wait for a unit, it is woken once. */
function startWake(
  { wakes, waker, limits }: Pick<GatewayContext, 'wakes' | 'waker' | 'limits'>,
  route: Route,
): Promise<WakeOutcome> {
  return wakes.run(route.unitId, limits.patienceMs.waking, () => waker.wake(route))
}
