// What the holder of an invitation's link may see (spec 4.1).

import type { App } from '../../app.ts'
import type { Invitation } from '../../contract/invite.ts'
import { getInviteByToken } from './find.ts'

export async function lookUpInvite(app: App, token: string): Promise<Invitation> {
  const invite = await getInviteByToken(app, token)
  return {
    teamId: invite.team_id,
    teamName: invite.team_name,
    email: invite.email,
    role: invite.role,
    inviterName: invite.inviter_name,
    expiresAt: invite.expires_at.toISOString(),
    expired: invite.expires_at <= app.clock.now(),
  }
}
