// Another role for a member, by an owner (spec 4.1, 5.6). The team never is without an owner. With a lesser role the
// programs of theirs are disconnected, as they were let in by somebody who decided more (decision 0095).

import type { App } from '../../app.ts'
import { forbidden, notFound } from '../../contract/errors.ts'
import type { Done, RoleChange } from '../../contract/member.ts'
import { isId } from '../../lib/ids.ts'
import { revokeClientsOf } from '../../store/credentials.ts'
import { deleteInvitesOf } from '../../store/invites.ts'
import { changeRole, findRole } from '../../store/members.ts'
import type { Role } from '../../store/teams.ts'
import type { Caller } from '../credentials/caller.ts'
import { amongPeople } from '../teams/lock.ts'
import { keepAnOwner } from './last-owner.ts'

export async function changeRoleOfMember(
  app: App,
  caller: Caller,
  { userId, role }: RoleChange & { userId: string },
): Promise<Done> {
  const { teamId } = caller
  if (!isId('user', userId)) throw notFound('member', userId)
  await amongPeople(app, caller, null, async (db, { team, allowed }) => {
    allowed('member.changeRole')
    const before = await findRole(db, { teamId, userId })
    if (before === null) throw notFound('member', userId)
    if (before === role) return
    if (before === 'owner') await keepAnOwner(db, teamId)
    if (role === 'owner' && team.personal) {
      throw forbidden('A personal team has one owner, whose it is; make a team of its own for two.')
    }
    await changeRole(db, { teamId, userId, role })
    if (isLesser(role, before)) await revokeClientsOf(db, { teamId, createdBy: userId, at: app.clock.now() })
    // He may invite nobody any more, and whom he has invited could be himself.
    if (role === 'member') await deleteInvitesOf(db, { teamId, invitedBy: userId })
  })
  return { ok: true }
}

const fromLeast = ['member', 'admin', 'owner'] as const satisfies Role[]

function isLesser(role: Role, before: Role): boolean {
  return fromLeast.indexOf(role) < fromLeast.indexOf(before)
}
