// PATCH /v1/units/{id}: the labels of a unit, and how long it lives. Not a use, and it wakes nothing.

import type { App } from '../../app.ts'
import type { Unit, UnitChange } from '../../contract/unit.ts'
import { setUnitLabels } from '../../store/unit-ends.ts'
import type { Caller } from '../credentials/caller.ts'
import { tellChanged } from '../transactions/changes.ts'
import { getRecord } from './get.ts'
import { notPossibleNow } from './lifecycle/failures.ts'
import { askedTimeToLive } from './model/time-to-live.ts'
import { toUnit } from './model/to-unit.ts'

/** A time to live counts from now, or from when the unit is ready. */
export async function changeUnit(app: App, caller: Caller, id: string, change: UnitChange): Promise<Unit> {
  const { teamId } = await getRecord(app, caller, id)
  const { metadata, atEnd } = change
  const timeToLive = askedTimeToLive(change.timeToLive)
  const labels = {
    ...(metadata && { metadata }),
    ...(atEnd && { atEnd }),
    ...(timeToLive !== undefined && { timeToLive }),
  }
  const isSet = await app.clock.withStableTime(
    async () => await setUnitLabels(app.db, { teamId, id, at: app.clock.now() }, labels),
  )
  const unit = await getRecord(app, caller, id)
  if (!isSet) throw notPossibleNow(unit, 'it cannot be changed')
  tellChanged(app, teamId)
  return toUnit(app, unit)
}
