// How far the creation of a unit is, as answers show it.

import type { App } from '../../../app.ts'
import type { UnitProgress } from '../../../contract/unit.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'

type Created = Pick<UnitRecord, 'id' | 'state' | 'forkId' | 'createdAt'>

/** Null for a unit that is not in `creating`. */
export function progressOf({ creations }: Pick<App, 'creations'>, unit: Created): UnitProgress | null {
  if (unit.state !== 'creating') return null
  // Another process may have begun it: this one takes it up soon.
  return creations.get(unit.id)?.progress ?? { ...firstOf(unit), startedAt: unit.createdAt.toISOString() }
}

function firstOf({ forkId }: Created): Omit<UnitProgress, 'startedAt'> {
  return { stage: forkId === null ? 'preparing' : 'copying', bytes: null, log: [] }
}
