// A process keeps its unit awake while it runs, if it was started with `keepsAwake` or a caller said so since: at most as long
// as a command may take, unless that is renewed (decisions/background-and-terminals.md).

import type { App } from '../../../app.ts'
import { limits } from '../../../contract/limits.ts'
import { isEngineError } from '../../../engine/errors.ts'
import type { MachineProcess } from '../../../engine/process.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { recordUse } from './record-use.ts'

/** Null: it does not keep its unit awake, or has ended. */
export function awakeUntilOf({ state, keepsAwake, awakeUntil, startedAt }: MachineProcess): Date | null {
  if (state !== 'running') return null
  return awakeUntil ?? (keepsAwake ? new Date(startedAt.getTime() + limits.processAwakeMs) : null)
}

/** Returns whether an idle unit must stay awake now. */
export async function isKeptAwake(app: App, unit: UnitRecord): Promise<boolean> {
  try {
    const now = app.clock.now()
    const processes = await app.fleet.engineOf(unit).processes(unit.id)
    const keeps = processes.some((process) => (awakeUntilOf(process) ?? now) > now)
    if (keeps) await recordUse(app, unit)
    return keeps
  } catch (error) {
    // Only the engine knows, so without it the unit stays awake. The sleep operation handles its other errors.
    return isEngineError(error, 'engine_away')
  }
}
