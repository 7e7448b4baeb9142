// The caller that every operation receives. Only authenticate creates one.

import type { Policy } from '../../contract/policy.ts'

export type Caller = {
  /** A key, an OAuth client of a team, or a person's session. */
  kind: 'key' | 'oauth' | 'session'
  credentialId: string
  credentialName: string
  /** The name of the program behind an agent; null for other callers, or if it has no name. */
  clientName: string | null
  userId: string | null
  teamId: string
  /** The number of the team's network: only units of one team reach each other (design 3). */
  networkGroup: number
  plan: 'hobby' | 'pro' | 'team'
  role: 'owner' | 'admin' | 'member'
  policy: Policy
}
