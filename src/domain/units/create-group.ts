// Units that one create makes together: each starts when those before it are ready. If one fails, the others are
// destroyed in whatever state they are (reliability F23).

import type { App } from '../../app.ts'
import { EngineError } from '../../engine/errors.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { listUnitsOfCreateGroup, listUnitsOfFailedCreates } from '../../store/create-groups.ts'
import { destroyQuietly } from './destroy.ts'
import { waitForChange } from './lifecycle/wait-until-stable.ts'

/** Resolves when the units before it run. Throws EngineError `start_failed` if one of them failed. */
export async function waitForCreateGroup(app: App, unit: UnitRecord): Promise<void> {
  if (unit.madeWith === null || unit.madeWith === unit.id) return
  for (;;) {
    const before = (await listOthers(app, unit)).filter(({ id }) => id < unit.id)
    const failed = before.find(({ state }) => state !== 'creating' && state !== 'running')
    if (failed)
      throw new EngineError('start_failed', `It needs the unit "${failed.name}": ${whatBecameOf(failed)}`)
    const [creating] = before.filter(({ state }) => state === 'creating')
    if (!creating) return
    await waitForChange(app, creating)
  }
}

function whatBecameOf({ state, error }: UnitRecord): string {
  return error ?? `that is ${state}.`
}

/** Call it once the unit is in `error`. After a crash the background job below does it. */
export async function destroyCreateGroup(app: App, unit: UnitRecord): Promise<void> {
  if (unit.madeWith === null) return
  const others = await listOthers(app, unit)
  const left = others.filter(({ state }) => state !== 'error' && state !== 'destroyed')
  await Promise.all(left.map((other) => destroyQuietly(app, other)))
}

/** One run of the background job. */
export async function cleanUpFailedCreates(app: App): Promise<void> {
  const left = await listUnitsOfFailedCreates(app.db, { now: app.clock.now(), limit: 100 })
  await Promise.all(left.map((unit) => destroyQuietly(app, unit)))
}

async function listOthers(app: App, { id, teamId, madeWith }: UnitRecord): Promise<UnitRecord[]> {
  const all = await listUnitsOfCreateGroup(app.db, { teamId, madeWith: madeWith ?? id, now: app.clock.now() })
  return all.filter((other) => other.id !== id)
}
