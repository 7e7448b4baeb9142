// Names of endpoints. A private one's label carries a secret besides, kept twice: as a hash for the gateway, which
// compares with it, and sealed for answers, which show the URL again.

import { hashEndpointSecret, newEndpointName, newEndpointSecret } from '../../contract/endpoint-label.ts'
import type { EndpointMode } from '../../contract/endpoint.ts'
import type { SecretKey } from '../../lib/crypto.ts'
import { newId } from '../../lib/ids.ts'
import type { EndpointRecord, EndpointsTable } from '../../store/endpoints.ts'

type Wanted = Pick<EndpointRecord, 'port' | 'protocol'> & {
  mode: EndpointMode
  at: Date
  /** Left out, none: clients have to name it. */
  gatewayPort?: number | null
}

/** A live endpoint's row, with a name nobody has had and, for a private one, a new secret. */
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

/** Null for a public endpoint. */
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
