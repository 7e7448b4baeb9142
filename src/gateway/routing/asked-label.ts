// Which endpoint a connection asks for.

import { type EndpointLabel, parseEndpointLabel } from '../../contract/endpoint-label.ts'
import { readHost } from './requested-host.ts'

/** Whom a connection is for, by the name in its greeting or, without one, the port it came to; null: nobody. */
export function requestedLabel(
  { domain, ports }: { domain: string; ports: { nameAt(port: number | undefined): string | null } },
  { serverName, localPort }: { serverName: string | null; localPort: number | undefined },
): EndpointLabel | null {
  const owner = ports.nameAt(localPort)
  if (serverName === null) return owner === null ? null : { name: owner, secret: null }
  const asked = readHost(serverName, domain)
  const label = asked.kind === 'label' ? parseEndpointLabel(asked.label) : null
  // Who names another endpoint may have an old number of somebody's: it is not for whoever has it now.
  return owner === null || label?.name === owner ? label : null
}
