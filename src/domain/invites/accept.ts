// Joining a team by an invitation: for whoever is signed in with the very address it was sent to. Its row goes in the
// transaction that makes the membership, so that of several who accept at once one does.

import type { App } from '../../app.ts'
import { forbidden, invalidState, notFound } from '../../contract/errors.ts'
import { isSameEmail } from '../../lib/email.ts'
import { deleteInvite, type InviteInTeam } from '../../store/invites.ts'
import { countMembers, insertMember } from '../../store/members.ts'
import { findTeam, findUser } from '../../store/teams.ts'
import { authorize } from '../authorization/authorize.ts'
import type { Caller } from '../credentials/caller.ts'
import { checkMemberSeats } from '../members/seats.ts'
import { lockLiveTeam } from '../teams/lock.ts'
import { getInviteByToken } from './find.ts'

/** Answers the id of the team that was joined. */
export async function acceptInvite(app: App, caller: Caller, token: string): Promise<{ teamId: string }> {
  authorize(caller, 'invite.accept')
  const invite = await getInviteByToken(app, token)
  const userId = await invitedUser(app, caller, invite)
  const { team_id: teamId, role } = invite
  const join = () =>
    app.db.transaction().execute(async (db) => {
      const at = app.clock.now()
      await lockLiveTeam(db, teamId)
      if (!(await deleteInvite(db, { teamId, id: invite.id }))) throw notFound('invitation', invite.prefix)
      if (invite.expires_at <= at) {
        throw invalidState('This invitation has expired; ask for another one.', null)
      }
      const team = await findTeam(db, teamId)
      if (team) checkMemberSeats(team.plan, await countMembers(db, teamId))
      await insertMember(db, { teamId, userId, role, at })
    })
  await app.teamTurns(teamId, () => app.clock.steadily(join))
  return { teamId }
}

/** Throws `forbidden` for anybody but the owner of the address, who has proven that it is his. */
async function invitedUser(app: App, { userId }: Caller, { email }: InviteInTeam): Promise<string> {
  const user = userId === null ? null : await findUser(app.db, userId)
  if (!user || !isSameEmail(user.email, email)) {
    throw forbidden('This invitation is for another address: sign in as the one it was sent to.')
  }
  if (!user.emailVerified) throw forbidden('Prove first that your address is yours: sign in by a link by mail.')
  return user.id
}
