// Sends the egress rules of a unit and its brokered secrets to the engine. The row is written first and records which
// version the engine has applied; a background job repeats what a crash interrupted. A start passes those of the row
// itself.

import type { App } from '../../app.ts'
import { isTransitional } from '../../contract/states.ts'
import { listEgressNotApplied, markEgressApplied } from '../../store/egress.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { findUnitOfAnyTeam } from '../../store/units.ts'
import { machineEgress } from './machine-egress.ts'

/**
 * Resolves when the rules of the row are in force. For a unit in a transitional state it does nothing: the unit's
 * operation may send older rules, so the job applies the new ones afterwards. One runs at a time for each unit, each with
 * the rules of that moment, so that an older version never comes last.
 */
export async function applyEgress(app: App, id: string): Promise<void> {
  await app.egressLocks(id, async () => {
    const unit = await findUnitOfAnyTeam(app.db, { id, now: app.clock.now() })
    if (!unit || isTransitional(unit.state) || isGone(unit) || !isDue(unit)) return
    const rules = await machineEgress(app, unit)
    await app.fleet.engineOf(unit).restrict({ id, generation: unit.generation }, rules)
    await markEgressApplied(app.db, { id, version: unit.egressVersion, at: app.clock.now() })
  })
}

/** Call it after a start, which sent the rules of this record. */
export async function noteStartedWithEgress(app: App, unit: UnitRecord): Promise<void> {
  if (!isDue(unit)) return
  await markEgressApplied(app.db, { id: unit.id, version: unit.egressVersion, at: app.clock.now() })
}

/** Never throws: the background job retries what fails here. */
export async function applyAll(app: App, ids: string[]): Promise<void> {
  await Promise.all(
    ids.map((id) =>
      applyEgress(app, id).catch((error: unknown) => {
        app.log.warn({ err: error, unitId: id }, 'rules of egress were not applied; will be retried')
      }),
    ),
  )
}

const AT_ONCE = 50

/** One run of the background job. */
export async function applyDueEgress(app: App): Promise<void> {
  const due = await listEgressNotApplied(app.db, AT_ONCE)
  await applyAll(
    app,
    due.map(({ id }) => id),
  )
}

function isDue({ egressVersion, egressAppliedVersion }: UnitRecord): boolean {
  return egressVersion > egressAppliedVersion
}

function isGone({ state }: UnitRecord): boolean {
  return state === 'error' || state === 'destroyed'
}
