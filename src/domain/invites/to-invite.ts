import type { Invite } from '../../contract/invite.ts'
import type { InviteRecord } from '../../store/invites.ts'

export function toInvite(record: InviteRecord): Invite {
  return {
    id: record.id,
    email: record.email,
    role: record.role,
    invitedBy: record.invited_by,
    expiresAt: record.expires_at.toISOString(),
    createdAt: record.created_at.toISOString(),
  }
}
