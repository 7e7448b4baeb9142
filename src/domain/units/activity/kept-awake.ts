// A process that was begun to keep its unit awake does so while it runs, for as long as a command may take (decision 98).

import type { App } from '../../../app.ts'
import { limits } from '../../../contract/limits.ts'
import { isEngineError } from '../../../engine/errors.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { recordUse } from './record-use.ts'

/** Whether the unit is not to be put to sleep now, though nobody has used it. */
export async function isKeptAwake(app: App, unit: UnitRecord): Promise<boolean> {
  try {
    const since = app.clock.now().getTime() - limits.processAwakeMs
    const processes = await app.engine.processes(unit.id)
    const keeps = processes.some(
      ({ state, keepsAwake, startedAt }) => state === 'running' && keepsAwake && startedAt.getTime() > since,
    )
    if (keeps) await recordUse(app, unit)
    return keeps
  } catch (error) {
    // Only the engine knows, and without it nobody falls asleep. What else it may say concerns the way to sleep.
    return isEngineError(error, 'engine_away')
  }
}
