// Changes of what a team sees, told within this process after they are committed. One server leads at a time (decision 57),
// so all of them happen here; what nobody tells of is found by those who look from time to time (domain/events/team-events.ts).

import type { Kysely } from 'kysely'
import type { App } from '../../app.ts'
import type { Database } from '../../store/db.ts'

/** Teams that a transaction under way changes. */
const changedIn = new WeakMap<Kysely<Database>, Set<string>>()

export function tellChanged({ teamEvents }: Pick<App, 'teamEvents'>, teamId: string): void {
  teamEvents.emit('changed', teamId)
}

/** For the client that runs a transaction: answers the teams that it turns out to change. */
export function beginNoting(db: Kysely<Database>): ReadonlySet<string> {
  const teams = new Set<string>()
  changedIn.set(db, teams)
  return teams
}

/** Told when the transaction is committed; outside of one, at once. */
export function noteChanged(app: Pick<App, 'db' | 'teamEvents'>, db: Kysely<Database>, teamId: string): void {
  const teams = changedIn.get(db)
  if (teams) teams.add(teamId)
  else if (db === app.db) tellChanged(app, teamId)
}
