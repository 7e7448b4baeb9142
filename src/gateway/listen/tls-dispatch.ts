// For whom a connection is whose TLS is there: its name says which endpoint is meant, and the endpoint which protocol
// is spoken. What is for nobody in particular is for HTTP, which has pages for that.

import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'
import type { EndpointLabel } from '../../contract/endpoint-label.ts'
import { labelMeant } from '../routing/asked-label.ts'
import { serverNameOf } from '../peer.ts'
import { readFirstPacket } from '../tcp/first-message.ts'
import type { Outcome } from '../sessions/outcomes.ts'
import { refusalIn } from '../tcp/refusals.ts'
import type { Route } from '../routing/route.ts'
import { receiveTcp } from '../tcp/handle-connection.ts'
import type { Greeting } from './tls-port.ts'
import { findOpen, type Visiting } from '../sessions/connect-to-unit.ts'

/** Hands the connection to whoever it is for. Never rejects. */
export async function tell(
  visiting: Visiting,
  socket: TLSSocket,
  { serverName, isPostgres }: Greeting,
  toHttp: () => void,
): Promise<void> {
  const label = labelMeant(visiting, { serverName, localPort: socket.localPort })
  const found = label === null ? null : await findTcp(visiting, label)
  if (socket.destroyed) return
  const route = found !== null && found !== 'unsure' && speaks(found, socket, isPostgres) ? found : null
  if (label !== null && route !== null) await receiveTcp(visiting, { socket, label, route })
  else if (isPostgres && serverName === null && label === null) refuse(socket, { kind: 'nameless' })
  else if (isPostgres) refuse(socket, found === 'unsure' ? { kind: 'unsure' } : { kind: 'unknown' })
  else toHttp()
}

async function findTcp(visiting: Visiting, label: EndpointLabel): Promise<Route | 'unsure' | null> {
  try {
    // MySQL has a port of its own, since its server speaks first.
    return await findOpen(visiting, label, ({ protocol }) => protocol !== 'http' && protocol !== 'mysql')
  } catch {
    return 'unsure'
  }
}

/** Whether the greeting was one of the endpoint's protocol. A browser at a database's address gets a page. */
function speaks({ protocol }: Route, { alpnProtocol }: TLSSocket, isPostgres: boolean): boolean {
  if (protocol === 'postgres') return isPostgres
  if (protocol === 'grpc') return alpnProtocol === 'h2'
  return !isPostgres && (alpnProtocol === null || alpnProtocol === false)
}

/**
 * To a client of Redis that names nobody, or what is gone: what it says first has come to HTTP, which cannot read it.
 * Null: it is none.
 */
export function refusalOfRedis(socket: Duplex, said: Buffer | undefined): Buffer | null {
  const isRedis = said !== undefined && readFirstPacket('redis', said) === 'whole'
  // Clients of HTTP say so in their greeting, as a rule.
  if (!isRedis || !(socket instanceof TLSSocket) || socket.alpnProtocol) return null
  return refusalIn('redis', { kind: serverNameOf(socket) === null ? 'nameless' : 'unknown' })
}

function refuse(socket: TLSSocket, outcome: Outcome): void {
  const refusal = refusalIn('postgres', outcome)
  if (refusal !== null) socket.write(refusal)
  socket.destroySoon()
}
