// Finds the endpoint that a connection asks for.

import { type EndpointLabel, parseEndpointLabel } from '../../contract/endpoint-label.ts'
import { readHost } from './requested-host.ts'

/**
 * Returns the label in the server name or, without one, of the endpoint that owns the port; null if there is none.
 */
export function requestedLabel(
  { domain, ports }: { domain: string; ports: { nameAt(port: number | undefined): string | null } },
  { serverName, localPort }: { serverName: string | null; localPort: number | undefined },
): EndpointLabel | null {
  const owner = ports.nameAt(localPort)
  if (serverName === null) return owner === null ? null : { name: owner, secret: null }
  const asked = readHost(serverName, domain)
  const label = asked.kind === 'label' ? parseEndpointLabel(asked.label) : null
  // If the name is of another endpoint, the client may use a port that has been given to a new owner: refuse.
  return owner === null || label?.name === owner ? label : null
}
