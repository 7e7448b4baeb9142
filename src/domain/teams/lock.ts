// Whatever is made in a team is made with the team locked, and its deletion takes the same lock: either the deletion
// finds what was made, or the making finds the team gone. So it is with who its people are: of two owners who demote
// each other at the same time, the second finds that he is none any more.

import type { Kysely } from 'kysely'
import type { App } from '../../app.ts'
import { forbidden } from '../../contract/errors.ts'
import type { Database } from '../../store/db.ts'
import { lockTeam } from '../../store/stacks.ts'
import { findTeamOfUser, type TeamOfUser } from '../../store/teams.ts'
import { type Action, authorize } from '../authorization/authorize.ts'
import type { Caller } from '../credentials/caller.ts'
import type { Once } from '../idempotency/once.ts'

/** Throws `forbidden` when the team has been deleted since the caller was let in. */
export async function lockLiveTeam(db: Kysely<Database>, teamId: string): Promise<void> {
  if (!(await lockTeam(db, teamId))) throw forbidden('This team has been deleted.')
}

/** What is known once the team is locked. */
type Inside = {
  /** As the caller sees it. */
  team: TeamOfUser
  /** Throws unless the caller may do this in the role that he has by now. */
  allowed: (action: Action) => void
}

/** One transaction about the caller's team and its people, in which the team is locked. */
export async function amongPeople<T>(
  app: App,
  caller: Caller,
  once: Once | null,
  work: (db: Kysely<Database>, inside: Inside) => Promise<T>,
): Promise<T> {
  const { teamId, userId } = caller
  const inTransaction = async (db: Kysely<Database>) => {
    await once?.claim(db)
    await lockLiveTeam(db, teamId)
    const team = userId === null ? null : await findTeamOfUser(db, { userId, id: teamId })
    if (team === null) throw forbidden('You are not a member of this team any more.')
    return await work(db, { team, allowed: (action) => authorize({ ...caller, role: team.role }, action) })
  }
  return await app.teamLocks(teamId, () =>
    app.clock.withStableTime(() => app.db.transaction().execute(inTransaction)),
  )
}
