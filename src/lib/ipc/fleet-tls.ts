// TLS 1.3 between members of the fleet on different machines (lib/fleet-identity.ts), with certificates on both sides.
// Nothing that a client sends is read before its certificate was verified.

import { once } from 'node:events'
import { X509Certificate } from 'node:crypto'
import { createServer, type PeerCertificate, type TLSSocket } from 'node:tls'
import { SECOND } from '../clock.ts'
import {
  FLEET_DOMAIN,
  type FleetIdentity,
  type FleetMember,
  type FleetRole,
  memberOf,
} from '../fleet-identity.ts'
import type { Log } from '../log.ts'
import type { Address } from '../setting-values.ts'
import type { Listening } from './unix-socket.ts'

export type FleetListenerOptions = Address & {
  identity: FleetIdentity
  /** Whether other processes listen at the same address (SO_REUSEPORT). */
  isShared?: boolean
  maxConnections?: number
}

type Inside = {
  /** The roles that may call. */
  mayCall: Record<FleetRole, boolean>
  /** What a connection can carry, as it is named in ALPN. */
  protocols: string[]
  /** Takes the connection of a member; its ALPN protocol is one of ours, or none. */
  onMember: (socket: TLSSocket, member: FleetMember) => void
  log: Log
}

export type FleetListener = Listening & {
  port: number
  /** Uses another identity for connections that come from now on. */
  show: (identity: FleetIdentity) => void
}

const HANDSHAKE_MS = 5 * SECOND
/** A host that is gone says nothing: its idle connections are found out by this. */
export const PROBE_AFTER_MS = 10 * SECOND
const MAX_CONNECTIONS = 4096

/** The options of either side. */
export function fleetTls({ key, certificate, authority }: FleetIdentity) {
  return { minVersion: 'TLSv1.3', key, cert: certificate, ca: authority } as const
}

/** For a client to which any server of the fleet will do. TLS checks that the authority has signed it and that it is valid. */
export const anyServer = {
  servername: `server.${FLEET_DOMAIN}`,
  checkServerIdentity: (_name: string, { raw }: PeerCertificate) =>
    memberOf(new X509Certificate(raw))?.role === 'server'
      ? undefined
      : new Error('another member of the fleet answers in place of its server'),
}

export async function listenForFleet(
  { host, port, identity, isShared = false, maxConnections = MAX_CONNECTIONS }: FleetListenerOptions,
  { mayCall, protocols, onMember, log }: Inside,
): Promise<FleetListener> {
  const server = createServer({
    ...fleetTls(identity),
    requestCert: true,
    rejectUnauthorized: true,
    ALPNProtocols: protocols,
    handshakeTimeout: HANDSHAKE_MS,
    noDelay: true,
    // A caller whose machine is gone ends no connection.
    keepAlive: true,
    keepAliveInitialDelay: PROBE_AFTER_MS,
  })
  server.maxConnections = maxConnections
  server.on('tlsClientError', (error, socket) => {
    log.debug({ error: error.message }, 'TLS connection refused')
    // Node leaves a connection open whose handshake took too long.
    socket.destroy()
  })
  let isClosing = false
  server.on('secureConnection', (socket) => {
    // Its handshake had begun before: nobody would end it, and the close would wait for it.
    if (isClosing) return void socket.destroy()
    socket.on('error', (error) => log.debug({ error: error.message }, 'TLS connection lost'))
    // TLS has checked that the authority has signed it and that it is valid now.
    const certificate = socket.getPeerX509Certificate()
    const member = certificate ? memberOf(certificate) : null
    const refuse = (why: string) => {
      log.warn({ peer: socket.remoteAddress, why }, 'TLS connection refused')
      socket.destroy()
    }
    if (member === null) return refuse('its certificate is not of this fleet')
    if (!mayCall[member.role]) return refuse(`a ${member.role} may not call here`)
    endWithCertificate(socket)
    onMember(socket, member)
  })
  server.listen({ port, host, ...(isShared && { reusePort: true }) })
  await once(server, 'listening')
  const bound = server.address()
  return {
    show: (renewed) => server.setSecureContext(fleetTls(renewed)),
    port: typeof bound === 'object' && bound !== null ? bound.port : port,
    close: async (end) => {
      isClosing = true
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      end()
      await closed
    },
  }
}

/** A connection that is kept must not outlive what let it in. */
function endWithCertificate(socket: TLSSocket): void {
  const endsMs = socket.getPeerX509Certificate()?.validToDate.getTime() ?? 0
  const look = () => {
    if (Date.now() >= endsMs) return void socket.destroy()
    timer = setTimeout(look, Math.min(endsMs - Date.now(), LONGEST_TIMER_MS)).unref()
  }
  let timer: NodeJS.Timeout | undefined
  look()
  socket.once('close', () => clearTimeout(timer))
}

/** The maximum of Node is 24 days, and a certificate is for longer. */
const LONGEST_TIMER_MS = 2 ** 31 - 1
