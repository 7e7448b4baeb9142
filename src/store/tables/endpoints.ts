// The columns of `endpoints` (store/endpoints.ts).

import type { EndpointMode, Protocol } from '../../contract/endpoint.ts'

export type EndpointsTable = {
  id: string
  unit_id: string
  team_id: string
  port: number
  protocol: Protocol
  mode: EndpointMode
  /** The key of the row: the host's label without the secret (contract/endpoint-label.ts). */
  name: string
  /** The hash that the gateway compares with; null for a public endpoint. */
  secret_hash: Buffer | null
  /** The encrypted secret, to show the URL again. */
  sealed_secret: Buffer | null
  /** The endpoint's own port at the gateway; null for all but public TCP endpoints. */
  gateway_port: number | null
  created_at: Date
  retired_at: Date | null
}
