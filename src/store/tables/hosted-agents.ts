// The columns of `hosted_environments` and `hosted_sessions` (store/hosted-agents.ts).

import type { HostedEnvironment, HostedSessionState, HostedState } from '../../contract/hosted-agents.ts'

export type HostedPlan = Pick<
  HostedEnvironment,
  'image' | 'size' | 'egress' | 'sleep' | 'timeToLive' | 'atOnce' | 'copyOf'
>

export type HostedEnvironmentsTable = {
  id: string
  team_id: string
  vendor: HostedEnvironment['vendor']
  /** The vendor's id of it. */
  environment: string
  /** The key that was made for it. */
  credential_id: string
  /** The vendor's credential, and the key itself. */
  sealed_key: Buffer
  sealed_token: Buffer
  plan: HostedPlan
  is_on: boolean
  /** Counts the changes: what a controller of an older version tells is ignored. */
  version: number
  state: HostedState
  note: string | null
  noted_at: Date | null
  created_by: string | null
  created_at: Date
}

export type HostedSessionsTable = {
  environment_id: string
  /** The vendor's id of it. */
  session: string
  unit_id: string | null
  state: HostedSessionState
  note: string | null
  turns: number
  began_at: Date
  changed_at: Date
}
