// When a bound becomes narrower, the rules and secrets of running units under it are narrowed at once, so that they match
// what a create would now allow (decisions/teams-and-policies.md, decisions/egress.md and decisions/brokered-secrets.md).
// The units keep running.

import type { Kysely } from 'kysely'
import type { App } from '../../app.ts'
import { teamSecretsOf } from '../../contract/env.ts'
import type { Policy } from '../../contract/policy.ts'
import { isTransitional } from '../../contract/states.ts'
import { type EgressRules, isWithin, narrowest } from '../../lib/egress/rules.ts'
import { listUnitsBound, makeScope, setEgress } from '../../store/egress.ts'
import type { Database } from '../../store/db.ts'
import { setEnv } from '../../store/team-secrets.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { mayBind } from '../policies/secrets.ts'

/** Of a team, or of a credential of it. */
export type BoundUnits = { teamId: string; heldBy: string | null }

/** The bounds that a change sets; what is left out stays. */
export type NarrowerBounds = {
  egress?: EgressRules | undefined
  allowedSecrets?: Policy['allowedSecrets'] | undefined
}

export type Narrowed = { id: string; name: string }

/** Returns the units that may reach more than the bounds, or bind other secrets, oldest first. */
export async function listWider(
  app: App,
  db: Kysely<Database>,
  which: BoundUnits,
  { egress: bound, allowedSecrets }: NarrowerBounds,
): Promise<UnitRecord[]> {
  if (bound === undefined && allowedSecrets === undefined) return []
  const units = await listUnitsBound(db, { ...which, now: app.clock.now() })
  return units.filter(
    ({ egress, spec }) =>
      (bound !== undefined && !isWithin(egress, bound)) ||
      (allowedSecrets !== undefined &&
        teamSecretsOf(spec.env).some((name) => !mayBind(allowedSecrets, name))),
  )
}

/**
 * Writes the narrower rules, and takes secrets away, with the team locked. Returns the units, whose rules the caller
 * applies after the commit (apply.ts).
 */
export async function narrowUnits(
  app: App,
  db: Kysely<Database>,
  which: BoundUnits,
  { egress: bound, allowedSecrets }: NarrowerBounds,
): Promise<Narrowed[]> {
  const wider = bound === undefined ? [] : await listWider(app, db, which, { egress: bound })
  for (const { id, stackId, egress } of wider) {
    const rules = narrowest(egress, bound ?? egress)
    await setEgress(db, { id, rules })
    if (rules.siblings === 'stack') await makeScope(db, stackId, { but: id })
  }
  forgetFrozen(app, wider)
  const unbound =
    allowedSecrets === undefined
      ? []
      : await unbindSecrets(app, db, which, (name) => mayBind(allowedSecrets, name))
  const all = new Map([...wider, ...unbound].map(({ id, name }) => [id, { id, name }]))
  return [...all.values()].toSorted((one, other) => (one.id < other.id ? -1 : 1))
}

/**
 * Takes the team's secrets that may not stay out of the environments of units, with the team locked. A variable that
 * had one is gone from the next start on.
 */
export async function unbindSecrets(
  app: App,
  db: Kysely<Database>,
  which: BoundUnits,
  mayStay: (name: string) => boolean,
): Promise<Narrowed[]> {
  const units = await listUnitsBound(db, { ...which, now: app.clock.now() })
  const bound = units.filter(({ spec }) => teamSecretsOf(spec.env).some((name) => !mayStay(name)))
  for (const unit of bound) {
    const stays = Object.entries(unit.spec.env).filter(
      ([, entry]) => typeof entry === 'string' || !('teamSecret' in entry) || mayStay(entry.teamSecret),
    )
    await setEnv(db, unit, Object.fromEntries(stays))
  }
  forgetFrozen(app, bound)
  return bound.map(({ id, name }) => ({ id, name }))
}

/** A frozen machine is not to be thawed by an older record. */
function forgetFrozen(app: App, units: UnitRecord[]): void {
  app.activity.forgetFrozen(units.filter(({ state }) => !isTransitional(state)).map(({ id }) => id))
}
