// The columns of `audit` (store/audit.ts).

import type { Generated } from 'kysely'

/** The interface that a call came through. */
export type Via = 'api' | 'dashboard' | 'mcp' | 'e2b'

export type AuditTable = {
  id: string
  team_id: string
  credential_kind: 'key' | 'oauth' | 'session'
  credential_id: string
  credential_name: string
  user_id: string | null
  action: string
  target: string | null
  /** The masked input: sizes and names instead of contents. */
  input: Record<string, unknown> | null
  request_id: string
  via: Via
  agent_name: string | null
  agent_version: string | null
  user_agent: string | null
  started_at: Date
  duration_ms: number | null
  status: number | null
  error_code: string | null
  cost_delta_nanocents: Generated<bigint>
}
