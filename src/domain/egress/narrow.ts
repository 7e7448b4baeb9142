// When a bound becomes narrower, the rules of running units under it are narrowed at once, so that they match what a
// create would now allow (decisions 130 and 138). The units keep running.

import type { Kysely } from 'kysely'
import type { App } from '../../app.ts'
import { isTransitional } from '../../contract/states.ts'
import { type EgressRules, isWithin, narrowest } from '../../lib/egress/rules.ts'
import { listUnitsBound, makeScope, setEgress } from '../../store/egress.ts'
import type { Database } from '../../store/db.ts'
import type { UnitRecord } from '../../store/unit-record.ts'

/** Of a team, or of a credential of it. */
export type BoundUnits = { teamId: string; heldBy: string | null }

/** Returns the units that may reach more than the bound, oldest first. */
export async function listWider(
  app: App,
  db: Kysely<Database>,
  which: BoundUnits,
  bound: EgressRules,
): Promise<UnitRecord[]> {
  const units = await listUnitsBound(db, { ...which, now: app.clock.now() })
  return units.filter(({ egress }) => !isWithin(egress, bound))
}

/**
 * Writes the narrower rules, with the team locked. Returns the units, of which the engine is told after the commit
 * (apply.ts).
 */
export async function narrowUnits(
  app: App,
  db: Kysely<Database>,
  which: BoundUnits,
  bound: EgressRules,
): Promise<Narrowed[]> {
  const wider = await listWider(app, db, which, bound)
  for (const { id, stackId, egress } of wider) {
    const rules = narrowest(egress, bound)
    await setEgress(db, { id, rules })
    if (rules.siblings === 'stack') await makeScope(db, stackId, { but: id })
  }
  // A frozen machine is not to be thawed by an older record.
  app.activity.forgetFrozen(wider.filter(({ state }) => !isTransitional(state)).map(({ id }) => id))
  return wider.map(({ id, name }) => ({ id, name }))
}

export type Narrowed = { id: string; name: string }
