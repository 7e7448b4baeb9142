// Units that one create makes together: each starts when those before it are ready, and one that cannot be made takes
// the others with it, whatever they have become meanwhile (reliability F23).

import type { App } from '../../../app.ts'
import { EngineError } from '../../../engine/errors.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { listUnitsOfCreateGroup, listUnitsOfFailedCreates } from '../../../store/create-groups.ts'
import { destroyQuietly } from '../destroy.ts'
import { waitForChange } from './wait-until-stable.ts'

/** Resolves when those before it run. Throws EngineError `start_failed` when one of them does not. */
export async function waitForCreateGroup(app: App, unit: UnitRecord): Promise<void> {
  if (unit.madeWith === null || unit.madeWith === unit.id) return
  for (;;) {
    const before = (await listOthers(app, unit)).filter(({ id }) => id < unit.id)
    const failed = before.find(({ state }) => state !== 'creating' && state !== 'running')
    if (failed) throw new EngineError('start_failed', `It needs "${failed.name}": ${whatBecameOf(failed)}`)
    const [creating] = before.filter(({ state }) => state === 'creating')
    if (!creating) return
    await waitForChange(app, creating)
  }
}

function whatBecameOf({ state, error }: UnitRecord): string {
  return error ?? `that is ${state}.`
}

/** Once the unit is in `error`. What a crash leaves undone the loop below does. */
export async function destroyCreateGroup(app: App, unit: UnitRecord): Promise<void> {
  if (unit.madeWith === null) return
  const others = await listOthers(app, unit)
  const left = others.filter(({ state }) => state !== 'error' && state !== 'destroyed')
  await Promise.all(left.map((other) => destroyQuietly(app, other)))
}

/** A loop's round. */
export async function cleanUpFailedCreates(app: App): Promise<void> {
  const left = await listUnitsOfFailedCreates(app.db, { now: app.clock.now(), limit: 100 })
  await Promise.all(left.map((unit) => destroyQuietly(app, unit)))
}

async function listOthers(app: App, { id, teamId, madeWith }: UnitRecord): Promise<UnitRecord[]> {
  const all = await listUnitsOfCreateGroup(app.db, { teamId, madeWith: madeWith ?? id, now: app.clock.now() })
  return all.filter((other) => other.id !== id)
}
