// The engine's TLS listener, for a server on another machine: it carries the same two protocols as the unix sockets,
// selected by ALPN.

import type { Socket } from 'node:net'
import { type FleetListener, type FleetListenerOptions, listenForFleet } from '../../lib/ipc/fleet-tls.ts'
import type { Log } from '../../lib/log.ts'
import { TLS_PROTOCOLS } from './protocol.ts'

/** Gateways call the server, and engines call no one. */
const mayCall = { server: true, gateway: false, engine: false }

type Inside = {
  /** Takes a connection with HTTP. */
  http: (socket: Socket) => void
  /** Takes a connection with JSON lines. */
  quick: (socket: Socket) => void
  log: Log
}

export async function listenByTls(
  options: FleetListenerOptions,
  { http, quick, log }: Inside,
): Promise<FleetListener> {
  return await listenForFleet(options, {
    mayCall,
    protocols: Object.values(TLS_PROTOCOLS),
    onMember: (socket) => (socket.alpnProtocol === TLS_PROTOCOLS.quick ? quick : http)(socket),
    log,
  })
}
