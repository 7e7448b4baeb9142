// What all visits at one gateway share.

import { createConcurrencyLimit } from '../lib/concurrency/concurrency-limit.ts'
import { createSingleFlight } from '../lib/concurrency/single-flight.ts'
import type { WakeOutcome } from './route.ts'
import { createCancelKeys } from './sessions/cancel-keys.ts'
import { type GatewayContext, type GatewayContextOptions, startWake } from './sessions/connect-to-unit.ts'
import { createMysqlSessions } from './sessions/mysql-sessions.ts'
import { createOpenSessions } from './sessions/open-sessions.ts'
import { createUnitConnections } from './sessions/unit-connections.ts'
import type { Peers } from './workers/peers.ts'
import { shareCancelKeys, shareMysqlSessions } from './workers/shared-sessions.ts'

export function createGatewayContext(options: GatewayContextOptions & { peers?: Peers }): GatewayContext {
  const { waker, limits, clock } = options
  const connections = createUnitConnections(clock)
  const wakes = createSingleFlight<WakeOutcome>(clock)
  const sessions = createOpenSessions({
    ...options,
    // Not awaited: the bytes that caused the wake have already been sent.
    wake: (route) => void startWake({ wakes, waker, limits }, route).catch(() => {}),
    forgetUnit: (unitId) => connections.forget(unitId),
  })
  const waiting = createConcurrencyLimit(limits.visits, limits.waitingPerUnit)
  return { ...options, sessions, connections, wakes, waiting, ...knownSessions(options.peers) }
}

/** `peers`: other gateways on the same ports. */
function knownSessions(peers: Peers | undefined): Pick<GatewayContext, 'cancelKeys' | 'mysqlSessions'> {
  const [cancelKeys, mysqlSessions] = [createCancelKeys(), createMysqlSessions()]
  if (!peers) return { cancelKeys, mysqlSessions }
  return {
    cancelKeys: shareCancelKeys(cancelKeys, peers),
    mysqlSessions: shareMysqlSessions(mysqlSessions, peers),
  }
}
