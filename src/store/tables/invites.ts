// The columns of `invites` (store/invites.ts).

import type { Role } from './teams.ts'

export type InvitesTable = {
  id: string
  team_id: string
  email: string
  role: Exclude<Role, 'owner'>
  prefix: string
  hash: Buffer
  invited_by: string | null
  created_at: Date
  expires_at: Date
}
