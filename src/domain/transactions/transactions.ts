// Every transaction of the domain starts here, which enforces two rules:
//  - The service time does not jump during a transaction (lib/service-clock.ts).
//  - A transaction that locks a team first waits for the team's lock in this process. Otherwise the calls of one
//    team could hold every connection to Postgres, each waiting there for the same row.

import type { Kysely } from 'kysely'
import type { App } from '../../app.ts'
import { forbidden } from '../../contract/errors.ts'
import type { ServiceClock } from '../../lib/service-clock.ts'
import type { Database } from '../../store/db.ts'
import { lockTeam } from '../../store/stacks.ts'
import { beginNoting, noteChanged, tellChanged } from './changes.ts'

type Work<T> = (db: Kysely<Database>) => Promise<T>
/** Claims the Idempotency-Key of the call (domain/idempotency/once.ts). Null for a call without one. */
type Once = { claim(db: Kysely<Database>): Promise<void> } | null

/** Runs the work in one transaction and returns what it returns. Hold no lock of a row or a team when calling it. */
export async function inTransaction<T>(
  {
    db,
    clock,
    teamEvents,
  }: Pick<App, 'db'> & {
    clock: Pick<ServiceClock, 'withStableTime'>
    teamEvents?: App['teamEvents']
  },
  work: Work<T>,
): Promise<T> {
  let changed: ReadonlySet<string> = new Set()
  const result = await clock.withStableTime(() =>
    db.transaction().execute(async (transaction) => {
      changed = beginNoting(transaction)
      return await work(transaction)
    }),
  )
  if (teamEvents) for (const teamId of changed) tellChanged({ teamEvents }, teamId)
  return result
}

/** Runs the work in one transaction, returns what it returns, and undoes all that it wrote. */
export async function inDiscardedTransaction<T>(
  { db, clock }: Pick<App, 'db' | 'clock'>,
  work: Work<T>,
): Promise<T> {
  return await clock.withStableTime(async () => {
    const transaction = await db.startTransaction().execute()
    try {
      return await work(transaction)
    } finally {
      await transaction.rollback().execute()
    }
  })
}

/** Runs the work in one transaction in which the team is locked, be it deleted or not. */
export async function inTeamTransaction<T>(app: App, teamId: string, work: Work<T>): Promise<T> {
  return await app.teamLocks(teamId, () => inTransactionOfLockedTeam(app, teamId, work))
}

/** The same for a caller that already holds the team's lock in this process (`app.teamLocks`). */
export async function inTransactionOfLockedTeam<T>(app: App, teamId: string, work: Work<T>): Promise<T> {
  return await inTransaction(app, async (db) => {
    noteChanged(app, db, teamId)
    await lockTeam(db, teamId)
    return await work(db)
  })
}

/**
 * Runs the work in one transaction in which the team is locked and exists. Everything in a team is created this way,
 * and deleting a team takes the same lock: either the deletion sees what was created, or this throws `forbidden`.
 */
export async function inLiveTeamTransaction<T>(
  app: App,
  { teamId, once }: { teamId: string; once: Once },
  work: Work<T>,
): Promise<T> {
  return await app.teamLocks(teamId, () =>
    inTransaction(app, async (db) => {
      noteChanged(app, db, teamId)
      await once?.claim(db)
      if (!(await lockTeam(db, teamId))) throw forbidden('This team has been deleted.')
      return await work(db)
    }),
  )
}
