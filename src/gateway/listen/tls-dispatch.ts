// Routes a connection after its TLS handshake: SNI selects the endpoint, the endpoint selects the protocol; unknown
// names fall through to HTTP, which can show an error page.

import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'
import type { EndpointLabel } from '../../contract/endpoint-label.ts'
import type { Door } from '../server-link/doors.ts'
import { findDoor } from '../handover/hand-over.ts'
import { applications, type HandedVisit } from '../handover/protocol.ts'
import { ownerOfPort, requestedLabel } from '../routing/asked-label.ts'
import { applicationOf, isSecure, peerAddress, serverNameOf } from '../peer.ts'
import { readFirstMessage } from '../tcp/first-message.ts'
import type { Outcome } from '../sessions/outcomes.ts'
import { errorIn, type Tcp } from '../tcp/protocol-errors.ts'
import type { Route } from '../route.ts'
import { join } from '../tcp/splice.ts'
import { handleTcpConnection } from '../tcp/handle-connection.ts'
import type { ClientHello } from './tls-port.ts'
import { findAuthorizedRoute, type GatewayContext } from '../sessions/connect-to-unit.ts'

/** Passes the connection to its handler. Never rejects. */
export async function dispatchConnection(
  context: GatewayContext,
  socket: TLSSocket,
  { serverName, isPostgres }: ClientHello,
  toHttp: () => void,
): Promise<void> {
  const owner = ownerOfPort(context, socket)
  const label = requestedLabel(context, { serverName, owner })
  const elsewhere = label === null ? null : await findDoor(context, socket, label.name)
  if (elsewhere) {
    const visit = { kind: 'tls', serverName, owner, isPostgres, ...arrivedBy(socket) } as const
    return await handOver(context, socket, { ...elsewhere, visit, toHttp })
  }
  const found = label === null ? null : await findTcp(context, label)
  if (socket.destroyed) return
  const route =
    found !== null && found !== 'routing-unavailable' && speaks(found, socket, isPostgres) ? found : null
  if (label !== null && route !== null) await handleTcpConnection(context, { socket, label, route })
  else if (isPostgres && serverName === null && label === null) refuse(socket, { kind: 'missing-sni' })
  else if (isPostgres)
    refuse(socket, found === 'routing-unavailable' ? { kind: 'routing-unavailable' } : { kind: 'unknown' })
  else toHttp()
}

const arrivedBy = (socket: TLSSocket) => ({
  address: peerAddress(socket),
  application: applications.find((known) => known === socket.alpnProtocol) ?? null,
})

type Elsewhere = { door: Door; route: Route; visit: HandedVisit; toHttp: () => void }

/** The connection is its visitor's own, whose server name is one unit's: all of it is for the other host. */
async function handOver(
  { handover }: GatewayContext,
  socket: TLSSocket,
  { door, route, visit, toHttp }: Elsewhere,
): Promise<void> {
  const other = await handover?.begin(door, visit)
  if (other && !socket.destroyed) return await join(socket, other)
  other?.destroy()
  if (socket.destroyed) return
  // Which asks again for each request, and has a page if the host is still away.
  if (route.protocol === 'http') return toHttp()
  refuse(socket, { kind: 'host-away' }, route.protocol)
}

async function findTcp(
  context: GatewayContext,
  label: EndpointLabel,
): Promise<Route | 'routing-unavailable' | null> {
  try {
    // MySQL has a port of its own, because its server speaks first.
    return await findAuthorizedRoute(
      context,
      label,
      ({ protocol }) => protocol !== 'http' && protocol !== 'mysql',
    )
  } catch {
    return 'routing-unavailable'
  }
}

/** Whether the ClientHello fits the endpoint's protocol. A browser at a database's address gets a page. */
function speaks({ protocol }: Route, socket: TLSSocket, isPostgres: boolean): boolean {
  const application = applicationOf(socket)
  if (protocol === 'postgres') return isPostgres
  if (protocol === 'grpc') return application === 'h2'
  return !isPostgres && application === null
}

/**
 * The error for a Redis client that sends no server name, or an unknown one: its first bytes went to the HTTP parser,
 * which cannot read them. Null if it is not a Redis client.
 */
export function redisError(socket: Duplex, said: Buffer | undefined): Buffer | null {
  const isRedis = said !== undefined && readFirstMessage('redis', said) === 'whole'
  // HTTP clients normally say so in ALPN.
  if (!isRedis || !(socket instanceof TLSSocket) || !isSecure(socket) || applicationOf(socket)) return null
  return errorIn('redis', { kind: serverNameOf(socket) === null ? 'missing-sni' : 'unknown' })
}

function refuse(socket: TLSSocket, outcome: Outcome, protocol: Tcp = 'postgres'): void {
  const refusal = errorIn(protocol, outcome)
  if (refusal !== null) socket.write(refusal)
  socket.destroySoon()
}
