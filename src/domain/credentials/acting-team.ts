// A path that names a team makes the caller act in that team: the caller's role there applies, and the call is
// audited there.

import type { App } from '../../app.ts'
import { forbidden, notFound } from '../../contract/errors.ts'
import { listMemberships, teamExists } from '../../store/teams.ts'
import type { Caller } from './caller.ts'

/**
 * Throws `forbidden` for a caller who is not a member, `not_found` for an unknown team. A key acts only in its own
 * team.
 */
export async function resolveActingTeam(app: App, caller: Caller, teamId: string): Promise<Caller> {
  if (caller.kind !== 'session' || caller.userId === null || caller.teamId === teamId) return caller
  const memberships = await listMemberships(app.db, caller.userId)
  const membership = memberships.find((each) => each.teamId === teamId)
  if (membership) {
    const { networkGroup, plan, role } = membership
    return { ...caller, teamId, networkGroup, plan, role }
  }
  if (await teamExists(app.db, teamId)) throw forbidden('You are not a member of this team.')
  throw notFound('team', teamId)
}
