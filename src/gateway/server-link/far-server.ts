// The server's side of the requests of other hosts' gateways: the same protocol over TLS. The certificate says which host
// asks, and the database whether that host still is one: the connections of a host that was given up or removed end.

import type { TLSSocket } from 'node:tls'
import type { App } from '../../app.ts'
import { SECOND } from '../../lib/clock.ts'
import { keptByKey } from '../../lib/concurrency/kept-by-key.ts'
import { MAX_GATEWAY_WORKERS } from '../../lib/gateway-workers.ts'
import type { FleetIdentity, FleetMember } from '../../lib/fleet-identity.ts'
import { type FleetListenerOptions, listenForFleet } from '../../lib/ipc/fleet-tls.ts'
import { runLoop } from '../../lib/loop.ts'
import { findGoneHosts, findHostOfGateway } from '../../store/host-gateways.ts'
import { farGateway } from './answers.ts'
import { converse } from './conversation.ts'
import { CALLS_PROTOCOL } from '../../lib/ipc/forwarding.ts'
import { LINK_PROTOCOL } from './protocol.ts'

/** Engines ask for nothing here, and servers only hand over calls of the API. */
const mayCall = { server: true, engine: false, gateway: true }

/** The gateways of a host, and earlier ones whose end has not been noticed. The oldest gives way. */
export const MAX_CONNECTIONS_OF_HOST = MAX_GATEWAY_WORKERS + 3
/** How long a host that was removed can still ask. */
const LOOK_EVERY_MS = 2 * SECOND

const TWO_ADDRESSES =
  'gateways of one host connect from two addresses: if two machines have its data directory, end Berth on one of them'

export type FarGateways = {
  port: number
  /** Uses another identity for connections that come from now on. */
  show: (identity: FleetIdentity) => void
  close: () => Promise<void>
}

/**
 * Serves until closed.
 *
 * @param takeCalls Takes a connection of another server, with calls that came there. It ends it itself.
 */
export async function serveFarGateways(
  app: App,
  options: FleetListenerOptions,
  takeCalls: (socket: TLSSocket) => void = (socket) => socket.destroy(),
): Promise<FarGateways> {
  const { log, clock } = app
  const gatewayOf = keptByKey(farGateway)
  const connected = new Set<TLSSocket>()
  const byHost = new Map<string, Set<TLSSocket>>()

  async function admit(socket: TLSSocket, { host }: FleetMember): Promise<void> {
    const issuedAt = socket.getPeerX509Certificate()?.validFromDate ?? new Date(0)
    const hostId = await findHostOfGateway(app.db, { name: host, issuedAt })
    const refuse = (why: string) => {
      log.warn({ host, peer: socket.remoteAddress, why }, 'gateway refused')
      socket.destroy()
    }
    if (socket.destroyed) return
    if (hostId === null) return refuse('its host is not one of this service, or is no more')
    if (hostId === app.fleet.findLocal()?.id) return refuse('its host is the own one of this server')
    noteOtherAddress(hostId, host, socket)
    remember(hostId, socket)
    converse(app, socket, gatewayOf(hostId))
    log.info({ host }, 'gateway of another host connected')
  }

  /** A copy of a host's data directory on another machine has its certificates; its engine is not called. */
  function noteOtherAddress(hostId: string, host: string, { remoteAddress }: TLSSocket): void {
    const others = [...(byHost.get(hostId) ?? [])].map((each) => each.remoteAddress)
    const other = others.find((each) => each !== undefined && each !== remoteAddress)
    if (other === undefined || remoteAddress === undefined) return
    const addresses = [other, remoteAddress]
    log.error({ alarm: 'host', host, addresses }, TWO_ADDRESSES)
  }

  function remember(hostId: string, socket: TLSSocket): void {
    const sockets = byHost.get(hostId) ?? new Set()
    byHost.set(hostId, sockets.add(socket))
    app.connectedGateways.add(hostId)
    socket.once('close', () => {
      sockets.delete(socket)
      if (sockets.size > 0 || byHost.get(hostId) !== sockets) return
      byHost.delete(hostId)
      app.connectedGateways.delete(hostId)
    })
    const [oldest] = sockets
    if (sockets.size > MAX_CONNECTIONS_OF_HOST) oldest?.destroy()
  }

  const listener = await listenForFleet(options, {
    mayCall,
    protocols: [LINK_PROTOCOL, CALLS_PROTOCOL],
    onMember: (socket, member) => {
      const areCalls = socket.alpnProtocol === CALLS_PROTOCOL
      if (areCalls !== (member.role === 'server')) return void socket.destroy()
      if (areCalls) return takeCalls(socket)
      connected.add(socket)
      socket.once('close', () => connected.delete(socket))
      admit(socket, member).catch((error: unknown) => {
        log.warn({ host: member.host, error: String(error) }, 'gateway could not be looked up')
        socket.destroy()
      })
    },
    log,
  })
  const stopping = new AbortController()
  const run = async () => {
    for (const hostId of await findGoneHosts(app.db, [...byHost.keys()])) {
      log.warn({ hostId }, 'gateway of a host that is none any more disconnected')
      for (const socket of byHost.get(hostId) ?? []) socket.destroy()
      app.activity.sessions.end(hostId)
    }
  }
  const loop = { name: 'gateways of other hosts', everyMs: LOOK_EVERY_MS, timeoutMs: 10 * SECOND, run }
  const looking = runLoop(loop, { clock, log, signal: stopping.signal })

  return {
    port: listener.port,
    show: listener.show,
    close: async () => {
      stopping.abort()
      await listener.close(() => {
        for (const hostId of byHost.keys()) app.activity.sessions.end(hostId)
        for (const socket of connected) socket.destroy()
      })
      await looking
    },
  }
}
