// Routes a connection after its TLS handshake: SNI selects the endpoint, the endpoint selects the protocol; unknown
// names fall through to HTTP, which can show an error page.

import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'
import type { EndpointLabel } from '../../contract/endpoint-label.ts'
import { requestedLabel } from '../routing/asked-label.ts'
import { serverNameOf } from '../peer.ts'
import { readFirstMessage } from '../tcp/first-message.ts'
import type { Outcome } from '../sessions/outcomes.ts'
import { errorIn } from '../tcp/protocol-errors.ts'
import type { Route } from '../routing/route.ts'
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
  const label = requestedLabel(context, { serverName, localPort: socket.localPort })
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
function speaks({ protocol }: Route, { alpnProtocol }: TLSSocket, isPostgres: boolean): boolean {
  if (protocol === 'postgres') return isPostgres
  if (protocol === 'grpc') return alpnProtocol === 'h2'
  return !isPostgres && (alpnProtocol === null || alpnProtocol === false)
}

/**
 * The error for a Redis client that sends no server name, or an unknown one: its first bytes went to the HTTP parser,
 * which cannot read them. Null if it is not a Redis client.
 */
export function redisError(socket: Duplex, said: Buffer | undefined): Buffer | null {
  const isRedis = said !== undefined && readFirstMessage('redis', said) === 'whole'
  // HTTP clients normally say so in ALPN.
  if (!isRedis || !(socket instanceof TLSSocket) || socket.alpnProtocol) return null
  return errorIn('redis', { kind: serverNameOf(socket) === null ? 'missing-sni' : 'unknown' })
}

function refuse(socket: TLSSocket, outcome: Outcome): void {
  const refusal = errorIn('postgres', outcome)
  if (refusal !== null) socket.write(refusal)
  socket.destroySoon()
}
