// A process started with `keepsAwake` keeps its unit awake while it runs, at most as long as a command may take
// (decisions/background-and-terminals.md).

import type { App } from '../../../app.ts'
import { limits } from '../../../contract/limits.ts'
import { isEngineError } from '../../../engine/errors.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { recordUse } from './record-use.ts'

/** Returns whether an idle unit must stay awake now. */
export async function isKeptAwake(app: App, unit: UnitRecord): Promise<boolean> {
  try {
    const since = app.clock.now().getTime() - limits.processAwakeMs
    const processes = await app.fleet.engineOf(unit).processes(unit.id)
    const keeps = processes.some(
      ({ state, keepsAwake, startedAt }) => state === 'running' && keepsAwake && startedAt.getTime() > since,
    )
    if (keeps) await recordUse(app, unit)
    return keeps
  } catch (error) {
    // Only the engine knows, so without it the unit stays awake. The sleep operation handles its other errors.
    return isEngineError(error, 'engine_away')
  }
}
