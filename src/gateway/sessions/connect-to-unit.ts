// The steps of every visit, in HTTP or another protocol: find its endpoint, check that it may use it, wake the unit
// if needed, and try to pass the visit on, again while the unit is not ready.

import { logLimitReached } from '../../lib/limit-reached.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { SingleFlight } from '../../lib/concurrency/single-flight.ts'
import type { EndpointLabel } from '../../contract/endpoint-label.ts'
import type { MysqlSessions } from './mysql-sessions.ts'
import type { OpenSessions, Session } from './open-sessions.ts'
import type { Outcome } from './outcomes.ts'
import type { Loopbacks } from './loopbacks.ts'
import type { Handovers } from '../handover/hand-over.ts'
import type { CancelKeys } from './cancel-keys.ts'
import type { Ports } from '../routing/asked-label.ts'
import { isAuthorized } from '../routing/private-link.ts'
import type { ConcurrencyLimit } from '../../lib/concurrency/concurrency-limit.ts'
import type { Activity, Route, Routes, WakeOutcome, Waker } from '../route.ts'
import type { UnitConnections } from './unit-connections.ts'
import type { SessionLimits } from './session-limits.ts'

export type GatewayContextOptions = {
  /** In lower case. */
  domain: string
  /** Finds endpoints by their ports. */
  ports: Ports
  routes: Routes
  waker: Waker
  activity: Activity
  limits: SessionLimits
  clock: Clock
  log: Log
  /** Hands visits over to the gateways of other hosts; absent where each host has its own alone. */
  handover?: Handovers
  /** For clients of another interface (http/door.ts). */
  door?: Door
}

export type Door = {
  /** Where the server answers them; null on a host without one. */
  socketPath: string | null
  /** As `routes.find`, but never an earlier result. */
  findNow: (name: string) => Promise<Route | null>
  loopbacks: Loopbacks
}

/** Everything that a visit needs. */
export type GatewayContext = GatewayContextOptions & {
  sessions: OpenSessions
  connections: UnitConnections
  wakes: SingleFlight<WakeOutcome>
  /** Limits the visits that wait for a unit to wake. */
  waiting: ConcurrencyLimit
  cancelKeys: CancelKeys
  mysqlSessions: MysqlSessions
}

/** The visitor has disconnected, or has its response. */
export type Closed = { kind: 'closed' }

/** Results of an attempt to pass a visit on, after which it is retried. */
export type Unready = { kind: 'refused-connection' } | { kind: 'stale' }

/** The destination of a visit: the label, and whether an endpoint is of the visit's kind. */
export type Target = {
  session: Session
  label: EndpointLabel
  isMeant: (route: Route) => boolean
  /** How long the unit may refuse connections. */
  refusingMs: SessionLimits['refusingMs']
}

/** Returns the route if there is one of this kind and the visitor may use it. Rejects if it is unknown. */
export async function findAuthorizedRoute(
  { routes }: Pick<GatewayContext, 'routes'>,
  label: EndpointLabel,
  isMeant: (route: Route) => boolean,
): Promise<Route | null> {
  const route = await routes.find(label.name)
  return route && isMeant(route) && isAuthorized(route, label.secret) ? route : null
}

/**
 * Passes the visit on as soon as the unit accepts it. A unit that refuses connections is retried for a while: its
 * server may be about to listen, and the route may just have changed.
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
  let mayBeOld = true
  for (let pauseMs = 20; ; pauseMs = Math.min(pauseMs * 2, 250)) {
    const slept: boolean = route.state !== 'running'
    const woken = await wake(context, session, route)
    if (woken.kind !== 'running') return woken
    if (slept) {
      patienceMs = refusingMs.woken
      mayBeOld = false
    }
    const outcome = await attempt(woken.route)
    if (session.isGone) return { kind: 'closed' }
    if (outcome.kind === 'stale') {
      if (isStale) return { kind: 'bad-gateway' }
      isStale = true
      continue
    }
    if (outcome.kind !== 'refused-connection') return outcome
    context.waker.invalidateLease(route.unitId)
    const isOver = clock.monotonicMs() - begunMs >= patienceMs
    if (!isOver) await clock.sleep(pauseMs)
    route = await findAuthorizedRoute(context, label, isMeant)
    if (!route) return { kind: 'unknown' }
    if (!isOver) continue
    // A route of before a sleep leads to a frozen unit, where one connection takes all of the patience: what is known now is tried.
    if (!mayBeOld || isSameRun(route, woken.route)) return { kind: 'not-listening', port: route.port }
    mayBeOld = false
  }
}

function isSameRun(route: Route, tried: Route): boolean {
  return route.state === 'running' && route.generation === tried.generation
}

/** The visit uses the unit until the returned function is called; calling it again is harmless. */
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

/** On a connection that was quiet for long the unit may be asleep: new bytes for it wake it at once. */
export function wakeIfAsleep(context: GatewayContext, run: Route): void {
  if (!context.waker.findLease(run)) void startWake(context, run).catch(() => {})
}

/** Returns the run. Each visit waits no longer than its own timeout, whatever happens to the wake. */
async function wake(
  context: GatewayContext,
  session: Session,
  route: Route,
): Promise<WakeOutcome | { kind: 'too-many' } | Closed> {
  const { waker, waiting } = context
  const awake = waker.findLease(route)
  if (awake) return { kind: 'running', route: awake }
  if (!waiting.tryAcquire(route.unitId)) {
    logLimitReached(context, { bound: 'visits that wait for one unit', by: route.unitId })
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

/** A unit is woken once, however many visits wait for it. */
export function startWake(
  { wakes, waker, limits }: Pick<GatewayContext, 'wakes' | 'waker' | 'limits'>,
  route: Route,
): Promise<WakeOutcome> {
  return wakes.run(route.unitId, limits.patienceMs.waking, () => waker.wake(route))
}
