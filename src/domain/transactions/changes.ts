// Announces committed changes of what a team sees, within this process. One server leads at a time
// (decisions/leadership.md), so all changes happen here; changes that are not announced are found by the periodic query
// (domain/events/team-events.ts).

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
