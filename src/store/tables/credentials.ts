// The columns of `credentials` (store/credentials.ts).

import type { Policy } from '../../contract/policy.ts'

export type CredentialsTable = {
  id: string
  team_id: string
  kind: 'key' | 'oauth'
  name: string
  /** Null for an agent. */
  prefix: string | null
  hash: Buffer | null
  policy: Policy
  created_by: string | null
  created_at: Date
  last_used_at: Date | null
  /** The User-Agent of its last use. */
  user_agent: string | null
  revoked_at: Date | null
  /** For an agent: the program's description when it was connected. */
  client: ConnectedClient | null
  /** Identifies programs that are the same client (domain/oauth/client-key.ts). */
  client_key: string | null
  connected_at: Date | null
}

export type ConnectedClient = { id: string; name: string | null; uri: string | null; icon: string | null }
