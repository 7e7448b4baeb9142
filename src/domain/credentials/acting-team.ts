// A path that names a team is about that team, whichever one the caller acted in until now: there his role counts, and
// there the call is written down.

import type { App } from '../../app.ts'
import { forbidden, notFound } from '../../contract/errors.ts'
import { listMemberships, teamExists } from '../../store/teams.ts'
import type { Caller } from './caller.ts'

/** Throws `forbidden` for who is no member, `not_found` where there is no team. A key acts in its own team alone. */
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
