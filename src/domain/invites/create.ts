// Invites a person to the caller's team, by a mailed link that is valid for a week. A new invitation to the same
// address replaces the earlier one, so that a lost mail can be sent again.

import type { App } from '../../app.ts'
import { conflict, forbidden } from '../../contract/errors.ts'
import type { InviteCreate, InviteCreated } from '../../contract/invite.ts'
import { DAY } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { countOtherInvites, type InviteRecord, putInvite } from '../../store/invites.ts'
import { countMembers, isMember } from '../../store/members.ts'
import { findUser } from '../../store/users.ts'
import { spendAllowance } from '../allowances/spend.ts'
import type { Caller } from '../credentials/caller.ts'
import { newToken } from '../credentials/token.ts'
import type { Once } from '../idempotency/once.ts'
import { postMail } from '../mail/post.ts'
import { checkMemberSeats, howPlansChange } from '../teams/plan-limits.ts'
import { amongPeople } from '../teams/lock.ts'
import { toInvite } from './to-invite.ts'
import { inviteMail } from './mail.ts'

const INVITES_LIVE_MS = 7 * DAY

/**
 * Throws `forbidden` for a plan without members, `quota_exceeded` if no seat is left, and `rateLimited` for too many
 * invitations by a team or to one address.
 */
export async function inviteToTeam(
  app: App,
  caller: Caller,
  { email, role }: InviteCreate,
  once: Once | null,
): Promise<InviteCreated> {
  const { teamId } = caller
  return await amongPeople(app, caller, once, async (db, { team, allowed }) => {
    allowed('invite.create')
    if (team.plan === 'hobby')
      throw forbidden(`Inviting people needs the Pro plan or above; ${howPlansChange}.`)
    if (await isMember(db, { teamId, email })) throw conflict(`${email} is already a member of the team.`)
    const now = app.clock.now()
    const used = (await countMembers(db, teamId)) + (await countOtherInvites(db, { teamId, email, now }))
    checkMemberSeats(team.plan, used)
    // Each invitation mails a person who did not ask for it.
    await spendAllowance(app, db, 'invite-by-team', teamId)
    await spendAllowance(app, db, 'invite-by-address', `${teamId} ${email}`)

    const { token, prefix, hash } = newToken('invite')
    const record: InviteRecord = {
      id: newId('invite'),
      team_id: teamId,
      email,
      role,
      prefix,
      hash,
      invited_by: caller.userId,
      created_at: now,
      expires_at: new Date(now.getTime() + INVITES_LIVE_MS),
    }
    await putInvite(db, record)
    const inviter = caller.userId === null ? null : await findUser(db, caller.userId)
    const link = `${app.config.publicUrl}/invites/${token}`
    await postMail(app, db, inviteMail(record, { team: team.name, inviter, link }))
    const created = { invite: toInvite(record) }
    await once?.keep(db, created)
    return created
  })
}
