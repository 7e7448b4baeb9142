// The members of the caller's team and its open invitations.

import type { App } from '../../app.ts'
import type { MemberList } from '../../contract/member.ts'
import { listInvites } from '../../store/invites.ts'
import { listMembers } from '../../store/members.ts'
import type { Caller } from '../credentials/caller.ts'
import { toInvite } from '../invites/to-invite.ts'

export async function listMembersOfTeam(app: App, { teamId }: Caller): Promise<MemberList> {
  const [members, invites] = await Promise.all([listMembers(app.db, teamId), listInvites(app.db, teamId)])
  return {
    members: members.map(({ joinedAt, ...plain }) => ({ ...plain, joinedAt: joinedAt.toISOString() })),
    invites: invites.map(toInvite),
  }
}
