// Proxies one request to its unit, and the response back: both are streamed, with backpressure in both directions.
// Every event of either side leads to exactly one outcome, and leaves nothing open.

import type { Agent } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Exchange } from './exchange.ts'
import type { Session } from '../sessions/open-sessions.ts'
import { isPlain, proxyPlainRequest } from './plain-request.ts'
import type { ProxyResult } from './proxy-result.ts'
import { IDLE_MS } from '../kept-connections.ts'
import type { RunConnections } from '../sessions/unit-connections.ts'
import type { Route } from '../route.ts'
import { Forwarding } from './forwarding.ts'

/** The unit of the route must run. Resolves once the visit is done, or with what to do next. */
export function proxyRequest(
  exchange: Exchange,
  session: Session,
  route: Route,
  { agent, plain }: RunConnections,
): Promise<ProxyResult> {
  return new Promise((resolve) => {
    if (!isPlain(exchange)) {
      new Forwarding(exchange, session, route, resolve).start({ agent })
      return
    }
    const leaveToNode = (replayed: Duplex) => {
      const settle = (outcome: ProxyResult) => {
        replayed.destroy()
        resolve(outcome)
      }
      new Forwarding(exchange, session, route, settle).start({ createConnection: () => replayed })
    }
    proxyPlainRequest({ exchange, session, route, connections: plain, keptMs: IDLE_MS, leaveToNode, resolve })
  })
}

/** The same over a connection that is made for this request alone, and closed after it. */
export function proxyRequestOver(
  exchange: Exchange,
  session: Session,
  route: Route,
  connection: Duplex,
): Promise<ProxyResult> {
  return new Promise((resolve) => {
    const settle = (outcome: ProxyResult) => {
      connection.destroy()
      resolve(outcome)
    }
    new Forwarding(exchange, session, route, settle).start({ createConnection: () => connection })
  })
}

/** The same over a connection of this agent, whichever it is. */
export function proxyRequestBy(
  exchange: Exchange,
  session: Session,
  route: Route,
  agent: Agent,
): Promise<ProxyResult> {
  return new Promise((resolve) => new Forwarding(exchange, session, route, resolve).start({ agent }))
}
