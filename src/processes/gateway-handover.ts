// Puts together how the gateway hands visits over to those of other hosts, and takes theirs (gateway/handover/).

import type { Config } from '../config.ts'
import { createDoors } from '../gateway/server-link/doors.ts'
import { createHandovers, type Handovers } from '../gateway/handover/hand-over.ts'
import { createLinks } from '../gateway/handover/links.ts'
import { type HandoverListener, listenForHandovers } from '../gateway/handover/take-over.ts'
import type { Gateway } from '../gateway/server.ts'
import type { ServerClient } from '../gateway/server-link/client.ts'
import type { SessionLimits } from '../gateway/sessions/session-limits.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { FollowedIdentity } from './identity.ts'

export type HandoverService = {
  handovers: Handovers
  /** Takes the visits that other hosts' gateways hand over, at the address of the settings. */
  listen(gateway: Pick<Gateway, 'takeVisit' | 'takeCancel'>): Promise<void>
  stop(): Promise<void>
}

type Around = {
  server: ServerClient
  identity: FollowedIdentity
  limits: SessionLimits
  isShared: boolean
  clock: Clock
  log: Log
}

/** Null: this host's gateway serves its own units alone. */
export function openHandover(
  { gatewayHandover, serverLink }: Pick<Config, 'gatewayHandover' | 'serverLink'>,
  identity: FollowedIdentity | null,
  around: Omit<Around, 'identity'>,
): HandoverService | null {
  if (!gatewayHandover || !identity) return null
  const { server, limits, isShared, clock, log } = around
  let listener: HandoverListener | null = null
  const links = createLinks({ identity: identity.current, clock, log })
  const doors = createDoors({
    server,
    serverHost: serverLink?.host ?? null,
    onLooked: () => {
      links.look(doors.all())
      listener?.look()
    },
    clock,
    log,
  })
  return {
    handovers: createHandovers({ doors, links }),
    async listen(gateway) {
      const options = { ...gatewayHandover, identity: identity.current(), isShared }
      // Half of what there is at most, so that no other host can take it all.
      const maxConnections = Math.ceil(limits.connections / 2)
      const inside = {
        doors,
        take: gateway.takeVisit.bind(gateway),
        cancel: gateway.takeCancel.bind(gateway),
        maxConnections,
        clock,
        log,
      }
      listener = await listenForHandovers(options, inside)
      identity.onRenewed(listener.show)
    },
    async stop() {
      await doors.stop()
      links.close()
      await listener?.close(() => {})
    },
  }
}
