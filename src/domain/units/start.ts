// Starting a stopped unit.

import type { App } from '../../app.ts'
import type { Unit } from '../../contract/unit.ts'
import type { Caller } from '../credentials/caller.ts'
import { notPossibleNow } from './failures.ts'
import { getRecord } from './get.ts'
import { takeOn } from './holder.ts'
import { startWay } from './run.ts'
import { getSettledUnit } from './settled.ts'
import { showUnit } from './show.ts'
import { recordUse } from './use.ts'
import { wakeUnit } from './wake.ts'
import { walk } from './way.ts'

/** Starts a stopped unit, wakes a sleeping one, and is a use of a running one. */
export async function startUnit(app: App, caller: Caller, id: string): Promise<Unit> {
  const unit = await getSettledUnit(app, caller, id)
  switch (unit.state) {
    case 'running':
      await recordUse(app, unit)
      break
    case 'sleeping':
      await wakeUnit(app, caller, unit)
      break
    default: {
      const starting = await takeOn(app, caller, unit, 'start')
      if (!starting) throw notPossibleNow(await getRecord(app, caller, id), 'it cannot be started')
      await walk(app, starting, startWay)
    }
  }
  return showUnit(await getRecord(app, caller, id))
}
