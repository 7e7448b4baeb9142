// Accepts an invitation, for a session of the address that it was sent to. The transaction that creates the
// membership deletes the invitation, so concurrent calls accept it once.

import type { App } from '../../app.ts'
import { forbidden, invalidState, notFound } from '../../contract/errors.ts'
import type { TeamAnswer } from '../../contract/team.ts'
import { isSameEmail } from '../../lib/email.ts'
import { deleteInvite, type InviteInTeam } from '../../store/invites.ts'
import { countMembers, insertMember } from '../../store/members.ts'
import { findTeamOfUser } from '../../store/teams.ts'
import { findUser } from '../../store/users.ts'
import { authorize } from '../authorization/authorize.ts'
import type { Caller } from '../credentials/caller.ts'
import { checkMemberSeats } from '../teams/plan-limits.ts'
import { inLiveTeamTransaction } from '../transactions/transactions.ts'
import { toTeamWithBalance } from '../teams/to-team.ts'
import { getInviteByToken } from './find.ts'

export async function acceptInvite(app: App, caller: Caller, token: string): Promise<TeamAnswer> {
  authorize(caller, 'invite.accept')
  const invite = await getInviteByToken(app, token)
  const userId = await invitedUser(app, caller, invite)
  const { team_id: teamId, role } = invite
  return await inLiveTeamTransaction(app, { teamId, once: null }, async (db) => {
    const at = app.clock.now()
    if (!(await deleteInvite(db, { teamId, id: invite.id }))) throw notFound('invitation', invite.prefix)
    if (invite.expires_at <= at) throw invalidState('This invitation has expired; ask for a new one.', null)
    const used = await countMembers(db, teamId)
    await insertMember(db, { teamId, userId, role, at })
    const team = await findTeamOfUser(db, { userId, id: teamId })
    if (!team) throw new Error('a team does not exist right after a member joined it')
    checkMemberSeats(team.plan, used)
    return { team: await toTeamWithBalance(db, team) }
  })
}

/** Throws `forbidden` for everyone but the verified owner of the address. */
async function invitedUser(app: App, { userId }: Caller, { email }: InviteInTeam): Promise<string> {
  const user = userId === null ? null : await findUser(app.db, userId)
  if (!user || !isSameEmail(user.email, email)) {
    throw forbidden('This invitation is for another address: sign in as the one it was sent to.')
  }
  if (!user.emailVerified) throw forbidden('Verify your address first: sign in by a link sent to it by mail.')
  return user.id
}
