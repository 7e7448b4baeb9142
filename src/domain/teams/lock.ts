// Members of a team are changed with the team locked: if two owners demote each other at the same time, the second
// one finds that they are no longer an owner.

import type { Kysely } from 'kysely'
import type { App } from '../../app.ts'
import { forbidden } from '../../contract/errors.ts'
import type { Database } from '../../store/db.ts'
import { findTeamOfUser, type TeamOfUser } from '../../store/teams.ts'
import { type Action, authorize } from '../authorization/authorize.ts'
import type { Caller } from '../credentials/caller.ts'
import type { Once } from '../idempotency/once.ts'
import { inLiveTeamTransaction } from '../transactions/transactions.ts'

/** What is known once the team is locked. */
type Inside = {
  /** The team, as the caller sees it. */
  team: TeamOfUser
  /** Throws unless the caller's current role allows this. */
  allowed: (action: Action) => void
}

/** Runs one transaction about the caller's team and its people, with the team locked. */
export async function amongPeople<T>(
  app: App,
  caller: Caller,
  once: Once | null,
  work: (db: Kysely<Database>, inside: Inside) => Promise<T>,
): Promise<T> {
  const { teamId, userId } = caller
  return await inLiveTeamTransaction(app, { teamId, once }, async (db) => {
    const team = userId === null ? null : await findTeamOfUser(db, { userId, id: teamId })
    if (team === null) throw forbidden('You are no longer a member of this team.')
    return await work(db, { team, allowed: (action) => authorize({ ...caller, role: team.role }, action) })
  })
}
