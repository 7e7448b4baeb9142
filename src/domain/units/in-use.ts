// Operations that need the unit's machine: they wake it, keep it awake while they last, and record at once
// when it turns out to be gone, so that the refusal tells how it ended.

import type { App } from '../../app.ts'
import { isEngineError } from '../../engine/errors.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { findUnitOfAnyTeam } from '../../store/units.ts'
import type { Caller } from '../credentials/caller.ts'
import { recordEndOf } from './exits.ts'
import { machineRef } from './machine.ts'
import { engineFailure, notPossibleNow } from './failures.ts'
import { getSettledUnit } from './settled.ts'
import { wakeUnit } from './wake.ts'
import { recordUse, whileInUse } from './use.ts'

/** Between finding a unit awake and using it, it can fall asleep or be lost; not many times in a row. */
const ATTEMPTS = 5

/**
 * Runs the work on the running unit, and with that is the use that moves `sleepsAt`. `refused` says in a
 * refusal what cannot be done, as "no command can run in it".
 */
export async function useUnit<T>(
  app: App,
  caller: Caller,
  id: string,
  refused: string,
  work: (unit: UnitRecord) => Promise<T>,
): Promise<T> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const unit = await getSettledUnit(app, caller, id)
    if (unit.state === 'sleeping') await wakeUnit(app, caller, unit)
    else if (unit.state !== 'running') throw notPossibleNow(unit, refused)
    else if (await recordUse(app, unit)) {
      try {
        return await whileInUse(app, unit, () => work(unit))
      } catch (error) {
        // The work has not begun, so it may be tried again on a unit that can be woken.
        const isGone = isEngineError(error, 'not_running') || isEngineError(error, 'frozen')
        if (!isGone) throw engineFailure(error, unit)
        await settleWith(app, unit).catch((problem: unknown) => {
          throw engineFailure(problem, unit)
        })
      }
    }
  }
  throw notPossibleNow(await getSettledUnit(app, caller, id), refused)
}

/** The machine is not as its unit says: its end is recorded, or a freeze that came too late undone. */
async function settleWith(app: App, unit: UnitRecord): Promise<void> {
  await recordEndOf(app, unit)
  const now = await findUnitOfAnyTeam(app.db, { id: unit.id, now: app.clock.now() })
  if (now?.state === 'running' && now.generation === unit.generation) await app.engine.thaw(machineRef(now))
}
