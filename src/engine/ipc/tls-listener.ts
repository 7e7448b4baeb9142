// The engine's TLS listener, for a server on another machine: TLS 1.3 with certificates of the fleet on both sides.
// It carries the same two protocols as the unix sockets, selected by ALPN. No request is read before the client's
// certificate was verified.

import { createServer, type TLSSocket } from 'node:tls'
import type { Socket } from 'node:net'
import { once } from 'node:events'
import type { Address } from '../../lib/setting-values.ts'
import { SECOND } from '../../lib/clock.ts'
import { type FleetIdentity, type FleetRole, memberOf } from '../../lib/fleet-identity.ts'
import type { Listening } from '../../lib/ipc/unix-socket.ts'
import type { Log } from '../../lib/log.ts'
import { TLS_PROTOCOLS, TLS_OPTIONS } from './protocol.ts'

export type TlsListenerOptions = Address & { identity: FleetIdentity }

/** The roles that may call an engine. Gateways call the server, and engines call no one. */
const mayCall = { server: true, gateway: false, engine: false } as const satisfies Record<FleetRole, boolean>

const HANDSHAKE_MS = 5 * SECOND
const PROBE_AFTER_MS = 10 * SECOND
const MAX_CONNECTIONS = 4096

type Inside = {
  /** Takes a connection with HTTP. */
  http: (socket: Socket) => void
  /** Takes a connection with JSON lines. */
  quick: (socket: Socket) => void
  log: Log
}

export type TlsListener = Listening & {
  port: number
  /** Uses another identity for connections that come from now on. */
  show: (identity: FleetIdentity) => void
}

export async function listenByTls(
  { host, port, identity }: TlsListenerOptions,
  { http, quick, log }: Inside,
): Promise<TlsListener> {
  const server = createServer({
    ...contextOf(identity),
    requestCert: true,
    rejectUnauthorized: true,
    ALPNProtocols: Object.values(TLS_PROTOCOLS),
    handshakeTimeout: HANDSHAKE_MS,
    noDelay: true,
    // A caller whose machine is gone ends no connection.
    keepAlive: true,
    keepAliveInitialDelay: PROBE_AFTER_MS,
  })
  server.maxConnections = MAX_CONNECTIONS
  server.on('tlsClientError', (error, socket) => {
    log.debug({ error: error.message }, 'TLS connection refused')
    // Node leaves a connection open whose handshake took too long.
    socket.destroy()
  })
  server.on('secureConnection', (socket) => {
    socket.on('error', (error) => log.debug({ error: error.message }, 'TLS connection lost'))
    const why = refusalOf(socket)
    if (why !== null) {
      log.warn({ peer: socket.remoteAddress, why }, 'TLS connection refused')
      return void socket.destroy()
    }
    endWithCertificate(socket)
    if (socket.alpnProtocol === TLS_PROTOCOLS.quick) quick(socket)
    else http(socket)
  })
  server.listen(port, host)
  await once(server, 'listening')
  const bound = server.address()
  return {
    show: (renewed) => server.setSecureContext(contextOf(renewed)),
    port: typeof bound === 'object' && bound !== null ? bound.port : port,
    close: async (end) => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      end()
      await closed
    },
  }
}

function contextOf({ key, certificate, authority }: FleetIdentity) {
  return { ...TLS_OPTIONS, key, cert: certificate, ca: authority }
}

/** TLS has checked that the authority has signed it and that it is valid now. */
function refusalOf(socket: TLSSocket): string | null {
  const certificate = socket.getPeerX509Certificate()
  const member = certificate ? memberOf(certificate) : null
  if (member === null) return 'its certificate is not of this fleet'
  return mayCall[member.role] ? null : `a ${member.role} calls no engine`
}

/** A connection that is kept must not outlive what let it in. */
function endWithCertificate(socket: TLSSocket): void {
  const ends = socket.getPeerX509Certificate()?.validToDate.getTime() ?? 0
  const timer = setTimeout(() => socket.destroy(), Math.min(ends - Date.now(), LONGEST_TIMER_MS))
  timer.unref()
  socket.once('close', () => clearTimeout(timer))
}

/** The maximum of Node; its caller then opens a new connection. */
const LONGEST_TIMER_MS = 2 ** 31 - 1
