// Requests for units of other hosts, one by one: of a connection whose requests may be for several units, as a proxy before the
// gateway has them, or a client that names none in TLS.

import type { Door } from '../server-link/doors.ts'
import type { Route } from '../route.ts'
import type { Closed, GatewayContext } from '../sessions/connect-to-unit.ts'
import type { Session } from '../sessions/open-sessions.ts'
import type { Outcome } from '../sessions/outcomes.ts'
import type { Exchange } from './exchange.ts'
import { proxyRequestBy } from './proxy-request.ts'

/** Returns where a request for this route is handed over; null: it is for this gateway. */
export function doorOf({ handover }: GatewayContext, exchange: Exchange, route: Route): Door | null {
  return exchange.isHandedOver ? null : (handover?.doorOf(route) ?? null)
}

export async function passToHost(
  { handover }: GatewayContext,
  exchange: Exchange,
  session: Session,
  { route, door }: { route: Route; door: Door },
): Promise<Outcome | Closed> {
  const agent = handover?.agentTo(door, exchange)
  for (let attempts = 0; agent && attempts < 2; attempts += 1) {
    const passed = await proxyRequestBy(exchange, session, route, agent)
    if (session.isGone) return { kind: 'closed' }
    if (passed.kind === 'refused-connection') return { kind: 'host-away' }
    if (passed.kind !== 'stale') return passed
  }
  return { kind: 'bad-gateway' }
}
