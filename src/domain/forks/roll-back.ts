// What is left of a fork that cannot be made: rows that tell why, and nothing else.

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
 * All copies end in `error`, and one whose process had ended by itself by then is destroyed. Where a source went, nothing
 * failed that anybody could look into: then all of them are destroyed. A stack that was made for them has no name any
 * more. `printed`: by the id of a copy. Answers what is to be destroyed; null: somebody else has decided what becomes of
 * the fork.
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
    const wasLast = await deleteStackOfLastUnit(db, { id: stackId, at: app.clock.now() })
    if (wasLast) await deleteSecrets(db, stackId)
    return destroying
  })
}

/** Unless somebody has made something else in it meanwhile. */
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
