// Ends a membership: a member leaves or is removed. The member's sessions lose the team with their next call and open
// streams end within seconds (api/operation.ts). OAuth clients that the member connected act for this person, and
// end. API keys keep working for the team; the answer lists them for review (spec 4.1).

import type { App } from '../../app.ts'
import { notFound } from '../../contract/errors.ts'
import type { MemberRemoved } from '../../contract/member.ts'
import { isId } from '../../lib/ids.ts'
import { listLiveKeysOf, revokeClientsOf } from '../../store/credentials.ts'
import { deleteInvitesOf } from '../../store/invites.ts'
import { deleteMember, findRole } from '../../store/members.ts'
import type { Caller } from '../credentials/caller.ts'
import { amongPeople } from '../teams/lock.ts'
import { keepAnOwner } from './last-owner.ts'

export async function removeMember(app: App, caller: Caller, userId: string): Promise<MemberRemoved> {
  const { teamId } = caller
  if (!isId('user', userId)) throw notFound('member', userId)
  return await amongPeople(app, caller, null, async (db, { allowed }) => {
    const role = await findRole(db, { teamId, userId })
    const removal = role === 'owner' || role === 'admin' ? 'leader.remove' : 'member.remove'
    allowed(userId === caller.userId ? 'member.leave' : removal)
    if (role === null) throw notFound('member', userId)
    if (role === 'owner') await keepAnOwner(db, teamId)
    const at = app.clock.now()
    await deleteMember(db, { teamId, userId })
    await deleteInvitesOf(db, { teamId, invitedBy: userId })
    await revokeClientsOf(db, { teamId, createdBy: userId, at })
    return { ok: true, keysToReview: await listLiveKeysOf(db, { teamId, createdBy: userId, now: at }) }
  })
}
