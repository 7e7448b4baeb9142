// Rolls back a fork that failed: only rows that record the error stay.

import type { Kysely } from 'kysely'
import type { App } from '../../app.ts'
import type { LogLine } from '../../engine/engine.ts'
import { isId } from '../../lib/ids.ts'
import type { Database } from '../../store/db.ts'
import { endFork, type ForkError, type ForkRecord } from '../../store/forks.ts'
import { deleteSecrets } from '../../store/secrets.ts'
import { abandonStack, deleteStack, deleteStackOfLastUnit, lockStack } from '../../store/stacks.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { listUnitsOfFork, listUnitsOfStacks, lockUnitsOfFork } from '../../store/units.ts'
import { inTeamTransaction } from '../transactions/transactions.ts'
import { transition } from '../units/lifecycle/transition.ts'
import { keepLog } from '../units/model/kept-log.ts'

/**
 * Sets all copies to `error`; a copy whose process had already exited is destroyed. If a source was destroyed, there
 * is no failure to look into, and all copies are destroyed. A stack created for the fork loses its name. `printed`:
 * the output of each copy, by its id. Returns the copies to destroy, or null if another process has already ended the
 * fork.
 */
export async function rollBackFork(
  app: App,
  { id, teamId, sourceId, stackId }: ForkRecord,
  error: ForkError,
  printed: ReadonlyMap<string, LogLine[]>,
): Promise<UnitRecord[] | null> {
  return await inTeamTransaction(app, teamId, async (db) => {
    if (!(await endFork(db, { id, at: app.clock.now(), error }))) return null
    await lockStack(db, stackId)
    if (isId('stack', sourceId)) await takeBackStack(app, db, { id, teamId, stackId })
    else await abandonStack(db, { id: stackId, madeBy: id })
    await lockUnitsOfFork(db, id)
    const units = await listUnitsOfFork(db, { teamId, forkId: id, now: app.clock.now() })
    const culprit = units.find((unit) => unit.id === error.unitId)?.name
    const forOthers = `Nothing came of its fork: "${culprit}" could not be copied. ${error.text}`
    const destroying: UnitRecord[] = []
    for (const unit of units) {
      const text = error.isSourceGone || unit.id === error.unitId ? error.text : forOthers
      const set = { error: text }
      if (!error.isSourceGone && (await transition(app, unit, 'createFailed', { db, set }))) {
        await keepLog(app, db, unit, printed.get(unit.id) ?? [])
        continue
      }
      const sent = await transition(app, unit, 'destroy', { db, set: error.isSourceGone ? set : {} })
      if (sent) destroying.push(sent)
    }
    await deleteStackOfLastUnit(db, { id: stackId, at: app.clock.now() })
    return destroying
  })
}

/** Unless another unit was created in it in the meantime. */
async function takeBackStack(
  app: App,
  db: Kysely<Database>,
  { id, teamId, stackId }: Pick<ForkRecord, 'id' | 'teamId' | 'stackId'>,
): Promise<void> {
  const now = app.clock.now()
  const units = await listUnitsOfStacks(db, { teamId, stackIds: [stackId], now })
  if (units.some(({ forkId }) => forkId !== id)) return
  await deleteStack(db, { teamId, id: stackId, at: now })
  await deleteSecrets(db, stackId)
}
