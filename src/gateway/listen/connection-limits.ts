// Limits the connections, in total and per peer, and handles errors on each.

import type { Socket } from 'node:net'
import { logLimitReached } from '../../lib/limit-reached.ts'
import { type Clock, SECOND } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { peerAddress, peerOf } from '../peer.ts'
import { createConcurrencyLimit } from '../../lib/concurrency/concurrency-limit.ts'
import type { SessionLimits } from '../sessions/session-limits.ts'

/** For listeners. The kernel detects a visitor that has vanished without closing. */
export const acceptOptions = { noDelay: true, keepAlive: true, keepAliveInitialDelay: 30 * SECOND }

export type ConnectionLimiter = {
  /** Closes a connection above the limits. */
  enter(socket: Socket): void
  count(): number
  closeAll(): void
}

export function createConnectionLimiter({
  limits,
  log,
  clock,
}: {
  limits: SessionLimits
  log: Log
  clock: Clock
}): ConnectionLimiter {
  const share = createConcurrencyLimit(limits.connections, limits.connectionsPerPeer)
  const inside = new Set<Socket>()
  return {
    enter(socket) {
      socket.on('error', () => socket.destroy())
      const peer = peerOf(peerAddress(socket))
      if (!share.tryAcquire(peer)) {
        const by = share.count(peer) >= limits.connectionsPerPeer ? peer : null
        logLimitReached({ log, clock }, { bound: 'connections to the gateway', by })
        socket.destroy()
        return
      }
      inside.add(socket)
      socket.once('close', () => {
        inside.delete(socket)
        share.release(peer)
      })
    },
    count: () => inside.size,
    closeAll() {
      for (const socket of inside) socket.destroy()
    },
  }
}
