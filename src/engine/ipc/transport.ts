// How calls reach an engine: over its unix sockets on this host, or over mutual TLS on another host
// (tls-listener.ts). The protocols are the same.

import { Agent, type ClientRequest, type IncomingMessage, request, type RequestOptions } from 'node:http'
import { Agent as TlsAgent, request as requestByTls } from 'node:https'
import { connect, type Socket } from 'node:net'
import { checkServerIdentity, connect as connectByTls, type PeerCertificate, TLSSocket } from 'node:tls'
import { type FleetIdentity, fleetNameOf, SIGNED_BEFORE_MS } from '../../lib/fleet-identity.ts'
import { fleetTls, PROBE_AFTER_MS } from '../../lib/ipc/fleet-tls.ts'
import { EngineError } from '../errors.ts'
import { TLS_PROTOCOLS } from './protocol.ts'
import { rpcSocketOf } from './rpc-protocol.ts'
import { noteUnsent, RESTARTS_WITHIN_MS } from './while-restarting.ts'

export type EngineAddress =
  | { socketPath: string }
  /** `name`: the host's in its certificate; another host at this address is refused. */
  | {
      host: string
      port: number
      name: string
      identity: FleetIdentity | (() => FleetIdentity)
      /** One whose certificate is older is an earlier host of this name, and refused. */
      memberSince?: Date
      /** How long calls wait for an engine that restarts. Default: as long as one takes. */
      restartsWithinMs?: number
    }

export type EngineTransport = {
  /** How long calls wait for an engine that restarts, in ms (while-restarting.ts). */
  waitsMs: number
  /** Over a kept connection, unless `options` say otherwise. */
  request(options: RequestOptions, onAnswer: (answer: IncomingMessage) => void): ClientRequest
  /** A connection for calls as JSON lines (rpc-client.ts). */
  connectQuick(): Socket
  /** No call to come uses a connection that is open now: the engine is leaving. */
  renew(): void
  close(): void
  /** Ends all connections, with what is under way on them. */
  cut(): void
}

const kept = { keepAlive: true, maxFreeSockets: 64, scheduling: 'lifo' } as const

export function transportTo(address: EngineAddress): EngineTransport {
  return 'socketPath' in address ? overSocket(address.socketPath) : overTls(address)
}

function overSocket(socketPath: string): EngineTransport {
  const agent = new Agent(kept)
  return {
    waitsMs: 0,
    request: (options, onAnswer) => request({ agent, socketPath, ...options }, onAnswer),
    connectQuick: () => connect(rpcSocketOf(socketPath)),
    renew: () => {},
    close: () => agent.destroy(),
    cut: () => agent.destroy(),
  }
}

function overTls({
  host,
  port,
  name,
  identity,
  memberSince,
  restartsWithinMs = RESTARTS_WITHIN_MS,
}: Exclude<EngineAddress, { socketPath: string }>): EngineTransport {
  // Asked for each connection, since an identity is renewed: a connection is kept for calls with the same one.
  const tls = () => ({
    host,
    port,
    ...fleetTls(typeof identity === 'function' ? identity() : identity),
    // The name that the other side's certificate must have.
    servername: fleetNameOf({ role: 'engine', host: name }),
  })
  const check = {
    checkServerIdentity: (expected: string, certificate: PeerCertificate) =>
      checkServerIdentity(expected, certificate) ?? refuseEarlier(certificate, memberSince),
  }
  // With a check of its own for each request, Node keeps no connection.
  const openAgent = () => new TlsAgent({ ...kept, keepAliveMsecs: PROBE_AFTER_MS, ...check })
  let agent = openAgent()
  const open = new Set<Socket>()
  const keep = (socket: Socket) => {
    if (open.has(socket)) return
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  }
  return {
    waitsMs: restartsWithinMs,
    // Node names HTTP in ALPN by itself.
    request: (options, onAnswer) => {
      const own = options.agent === false ? check : {}
      const made = requestByTls({ agent, ...tls(), ...own, ...options }, onAnswer).once('socket', keep)
      return made.once('error', (error) => {
        if (!(made.socket instanceof TLSSocket && made.socket.authorized)) noteUnsent(error)
      })
    },
    connectQuick: () => {
      const socket = connectByTls({ ...tls(), ...check, ALPNProtocols: [TLS_PROTOCOLS.quick] })
      keep(socket)
      return socket.setNoDelay(true).setKeepAlive(true, PROBE_AFTER_MS)
    },
    renew: () => {
      for (const socket of Object.values(agent.freeSockets).flat()) socket?.destroy()
      agent = openAgent()
    },
    close: () => agent.destroy(),
    cut: () => {
      for (const socket of open) socket.destroy(new EngineError('engine_away', 'The host does not answer.'))
    },
  }
}

function refuseEarlier(
  { valid_from: from }: PeerCertificate,
  memberSince: Date | undefined,
): Error | undefined {
  if (!memberSince || Date.parse(from) >= memberSince.getTime() - SIGNED_BEFORE_MS) return undefined
  return new EngineError('engine_away', 'Its certificate is that of an earlier host of this name.')
}
