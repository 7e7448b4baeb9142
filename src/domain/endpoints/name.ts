// Names of endpoints. The label of a private one also contains a secret, which is stored as a hash for the gateway to
// compare, and encrypted for answers that show the URL again.

import { hashEndpointSecret, newEndpointName, newEndpointSecret } from '../../contract/endpoint-label.ts'
import type { EndpointMode } from '../../contract/endpoint.ts'
import type { SecretKey } from '../../lib/crypto.ts'
import { newId } from '../../lib/ids.ts'
import type { EndpointRecord, EndpointsTable } from '../../store/endpoints.ts'

type Wanted = Pick<EndpointRecord, 'port' | 'protocol'> & {
  mode: EndpointMode
  at: Date
  /** Null or absent: clients must send a server name. */
  gatewayPort?: number | null
}

/** Returns the row of a live endpoint, with a new name and, if private, a new secret. */
export function newEndpoint(
  key: SecretKey,
  unit: { id: string; teamId: string; name: string },
  { port, protocol, mode, at, gatewayPort = null }: Wanted,
): EndpointsTable {
  const id = newId('endpoint')
  const secret = mode === 'private' ? newEndpointSecret() : null
  return {
    id,
    unit_id: unit.id,
    team_id: unit.teamId,
    port,
    protocol,
    mode,
    name: newEndpointName(unit.name),
    secret_hash: secret === null ? null : hashEndpointSecret(secret),
    sealed_secret: secret === null ? null : key.seal(Buffer.from(secret), context(unit.teamId, id)),
    gateway_port: gatewayPort,
    created_at: at,
    retired_at: null,
  }
}

/** Returns null for a public endpoint. */
export function openSecret(
  key: SecretKey,
  teamId: string,
  { id, sealedSecret }: Pick<EndpointRecord, 'id' | 'sealedSecret'>,
): string | null {
  return sealedSecret === null ? null : key.open(sealedSecret, context(teamId, id)).toString()
}

function context(teamId: string, endpointId: string): string[] {
  return ['endpoint', teamId, endpointId]
}
