// Operations that need the unit's machine running: they wake it, keep it awake while they last, and say how
// it ended when it turns out to be gone.

import type { App } from '../../app.ts'
import { isEngineError } from '../../engine/errors.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import type { Caller } from '../credentials/caller.ts'
import { recordExitOf } from './exits.ts'
import { engineFailure, notPossibleNow } from './failures.ts'
import { getRecord } from './get.ts'
import { getSettledUnit } from './settled.ts'
import { wakeUnit } from './start.ts'
import { recordUse, whileInUse } from './use.ts'

/** Between finding it awake and using it a unit can fall asleep; not many times in a row. */
const ATTEMPTS = 5

/**
 * The running unit an operation needs, woken if it sleeps; this is the use that moves `sleepsAt`. `what`
 * says in a refusal what cannot be done, as "no command can run in it".
 */
export async function getUnitInUse(app: App, caller: Caller, id: string, what: string): Promise<UnitRecord> {
  let unit = await getSettledUnit(app, caller, id)
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    if (unit.state === 'running' && (await recordUse(app, unit))) return unit
    if (unit.state === 'sleeping') await wakeUnit(app, caller, unit)
    else if (unit.state !== 'running') break
    unit = await getSettledUnit(app, caller, id)
  }
  throw notPossibleNow(unit, what)
}

/**
 * Work on the machine of a unit in use, which keeps it in use. A machine that turns out not to run is
 * recorded at once, so that the refusal tells how it ended.
 */
export async function onMachine<T>(
  app: App,
  caller: Caller,
  unit: UnitRecord,
  what: string,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await whileInUse(app, unit, work)
  } catch (error) {
    if (!isEngineError(error, 'not_running')) throw engineFailure(error, unit)
    await recordExitOf(app, unit)
    throw notPossibleNow(await getRecord(app, caller, unit.id), what)
  }
}
