// Finds the endpoint that a connection asks for.

import type { Socket } from 'node:net'
import { type EndpointLabel, parseEndpointLabel } from '../../contract/endpoint-label.ts'
import { arrivalOf } from '../peer.ts'
import { readHost } from './requested-host.ts'

/** Finds the endpoint that a port belongs to. */
export type Ports = { nameAt(port: number | undefined): string | null }

/** Returns the name of the endpoint that owns the port at which the visitor came in, or null. */
export function ownerOfPort({ ports }: { ports: Ports }, socket: Socket): string | null {
  const arrival = arrivalOf(socket)
  return arrival ? arrival.owner : ports.nameAt(socket.localPort)
}

/**
 * Returns the label in the server name or, without one, of the endpoint that owns the port; null if there is none.
 */
export function requestedLabel(
  { domain }: { domain: string },
  { serverName, owner }: { serverName: string | null; owner: string | null },
): EndpointLabel | null {
  if (serverName === null) return owner === null ? null : { name: owner, secret: null }
  const asked = readHost(serverName, domain)
  const label = asked.kind === 'label' ? parseEndpointLabel(asked.label) : null
  // If the name is of another endpoint, the client may use a port that has been given to a new owner: refuse.
  return owner === null || label?.name === owner ? label : null
}
