// Who is calling, as every operation receives it. Made by authenticate alone.

import type { Policy } from '../../contract/policy.ts'

export type Caller = {
  /** A key, an OAuth client of a team, or a person's session. */
  kind: 'key' | 'oauth' | 'session'
  credentialId: string
  credentialName: string
  /** What the program of an agent calls itself; null for others, and where it has no name. */
  clientName: string | null
  userId: string | null
  teamId: string
  /** The team's number on the network: its units reach each other and nobody else's (design 3). */
  networkGroup: number
  plan: 'hobby' | 'pro' | 'team'
  role: 'owner' | 'admin' | 'member'
  policy: Policy
}
