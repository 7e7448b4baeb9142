// Changes the role of a member, by an owner (spec 4.1, 5.6). A team always keeps an owner. A lesser role disconnects
// the programs that the member connected, since they were approved with more rights (decisions/agents.md).

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
      throw forbidden('A personal team has exactly one owner; make them an admin, or create another team.')
    }
    await changeRole(db, { teamId, userId, role })
    if (isLesser(role, before)) await revokeClientsOf(db, { teamId, createdBy: userId, at: app.clock.now() })
    // The member may not invite any more, and could have invited another address of their own.
    if (role === 'member') await deleteInvitesOf(db, { teamId, invitedBy: userId })
  })
  return { ok: true }
}

const fromLeast = ['member', 'admin', 'owner'] as const satisfies Role[]

function isLesser(role: Role, before: Role): boolean {
  return fromLeast.indexOf(role) < fromLeast.indexOf(before)
}
