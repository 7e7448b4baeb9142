// A connection to a MySQL endpoint, after its TLS handshake. No unit is woken before its client has sent a
// well-formed login. The unit is named by SNI, by the port or, since many clients send no SNI and most endpoints have
// no port of their own, in front of the user name.

import type { TLSSocket } from 'node:tls'
import { type EndpointLabel, parseEndpointLabel } from '../../../contract/endpoint-label.ts'
import { findDoor } from '../../handover/hand-over.ts'
import { peerAddress } from '../../peer.ts'
import { ownerOfPort, requestedLabel } from '../../routing/asked-label.ts'
import { errorPacket, type Login, MAX_LOGIN_BYTES, readLogin } from './messages.ts'
import { readPacket, writePacket } from './packets.ts'
import { runMysqlSession } from './session.ts'
import type { Session } from '../../sessions/open-sessions.ts'
import type { Outcome } from '../../sessions/outcomes.ts'
import { mysqlErrors } from '../protocol-errors.ts'
import type { Route } from '../../route.ts'
import { withSession } from '../session.ts'
import { join } from '../splice.ts'
import {
  type Closed,
  findAuthorizedRoute,
  connectWithRetry,
  type GatewayContext,
} from '../../sessions/connect-to-unit.ts'

/** What a client was told and asked for before TLS was established (listen/mysql-port.ts). */
export type Greeted = { serverName: string | null; sessionId: number }

/** Relays the connection between the client and its unit. Never rejects. */
export async function handleMysqlConnection(
  context: GatewayContext,
  socket: TLSSocket,
  { serverName, sessionId }: Greeted,
): Promise<void> {
  await withSession(context, { socket, protocol: 'mysql' }, async (session) => {
    // The handshake had one half of the timeout; the login has the other.
    session.sinceMs -= context.limits.patienceMs.finding / 2
    session.onCut(() => socket.destroy())
    const packet = await readPacket(socket, MAX_LOGIN_BYTES)
    const login = packet === null ? null : readLogin(packet)
    if (login === null) return { kind: 'malformed' }
    const owner = ownerOfPort(context, socket)
    const label = requestedLabel(context, { serverName, owner })
    const meant = label === null ? readUser(login) : { label, login }
    if (meant === null) {
      socket.write(errorPacket(3, mysqlErrors.noName))
      return { kind: 'closed' }
    }
    const elsewhere = await findDoor(context, socket, meant.label.name)
    if (!elsewhere) return await serve(context, session, { socket, sessionId, ...meant })
    const visit = { kind: 'mysql', address: peerAddress(socket), serverName, owner, sessionId } as const
    const other = await context.handover?.begin(elsewhere.door, visit)
    if (!other) return { kind: 'host-away' }
    session.staysOpen(() => 0)
    session.onCut(() => other.destroy())
    // The client's login, as it sent it.
    if (packet) other.write(writePacket(packet))
    await join(socket, other)
    return { kind: 'closed' }
  })
}

type Meant = { label: EndpointLabel; login: Login }

/** `label.user`: a label contains no dot. */
function readUser(login: Login): Meant | null {
  const dot = login.user.indexOf('.')
  const label = dot < 0 ? null : parseEndpointLabel(login.user.subarray(0, dot).toString('latin1'))
  return label === null ? null : { label, login: { ...login, user: login.user.subarray(dot + 1) } }
}

async function serve(
  context: GatewayContext,
  session: Session,
  { socket, sessionId, label, login }: Meant & { socket: TLSSocket; sessionId: number },
): Promise<Outcome | Closed> {
  const isMeant = ({ protocol }: Route) => protocol === 'mysql'
  const route = await findAuthorizedRoute(context, label, isMeant).catch(() => 'routing-unavailable' as const)
  if (route === 'routing-unavailable') return { kind: 'routing-unavailable' }
  if (route === null) return { kind: 'unknown' }
  session.name = label.name
  if (!context.sessions.enterUnit(session, route)) return { kind: 'too-many' }
  const { refusingSessionMs: refusingMs } = context.limits
  return await connectWithRetry(context, { session, label, isMeant, refusingMs }, route, (run) =>
    runMysqlSession(context, session, { socket, sessionId, login, run }),
  )
}
