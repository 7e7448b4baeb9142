// The egress rules of one unit: reads them, sets them, and checks a host against them without sending a packet
// (design 5).

import type { App } from '../../app.ts'
import type {
  EgressAsked,
  EgressCheck,
  EgressDecision,
  EgressInForce,
  EgressSet,
} from '../../contract/egress.ts'
import { policySchema } from '../../contract/policy.ts'
import { isTransitional } from '../../contract/states.ts'
import { isUnitName } from '../../lib/egress/entry.ts'
import { decideEgress } from '../../lib/egress/explain.ts'
import { type EgressRules, openEgress } from '../../lib/egress/rules.ts'
import { findActiveUnits } from '../../store/active-units.ts'
import { makeScope, setEgress } from '../../store/egress.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { findUnit, listUnitsOfStacks, lockUnit } from '../../store/units.ts'
import type { Caller } from '../credentials/caller.ts'
import { askedEgress, checkEgress, checkHolder } from '../policies/egress.ts'
import { checkEnforced } from '../policies/enforced.ts'
import { inTeamTransaction } from '../transactions/transactions.ts'
import { effectivePolicyOf, readEffectivePolicy } from './admission/effective-policy.ts'
import { getRecord } from './get.ts'
import { engineFailure, notPossibleNow } from './lifecycle/failures.ts'
import { retryOnConflict } from './lifecycle/retry-on-conflict.ts'
import { waitUntilStable } from './lifecycle/wait-until-stable.ts'
import { searchDomain } from './model/names.ts'
import { applyAll, applyEgress } from '../egress/apply.ts'

export async function getUnitEgress(app: App, caller: Caller, id: string): Promise<EgressInForce> {
  return inForce(await getRecord(app, caller, id))
}

/** Resolves once the rules are in force, also for connections that are open. */
export async function setUnitEgress(
  app: App,
  caller: Caller,
  id: string,
  asked: EgressAsked,
): Promise<EgressSet> {
  const early = askedEgress(effectivePolicyOf(app, caller), asked)
  checkEgress(effectivePolicyOf(app, caller), early)
  await checkEnforced(app, early)
  const before = await retryOnConflict(async () => await write(app, caller, id, asked))
  if (before === null) throw notPossibleNow(await getRecord(app, caller, id), REFUSED)
  try {
    await applyEgress(app, id)
  } catch (error) {
    throw engineFailure(error, before)
  }
  return { ...inForce(await getRecord(app, caller, id)), previous: before.egress }
}

const REFUSED = 'what it may reach cannot be set'

/** Returns the unit as it was; null if it has changed state meanwhile. */
async function write(app: App, caller: Caller, id: string, asked: EgressAsked): Promise<UnitRecord | null> {
  const found = await waitUntilStable(app, caller, id)
  if (!isSettable(found)) throw notPossibleNow(found, REFUSED)
  const { teamId, stackId } = found
  let isNewScope = false
  const before = await inTeamTransaction(app, teamId, async (db) => {
    await lockUnit(db, id)
    const unit = await findUnit(db, { teamId, id, now: app.clock.now() })
    if (!unit || !isSettable(unit)) return null
    const { bounds } = await readEffectivePolicy(app, db, caller)
    const rules = askedEgress(bounds, asked)
    checkEgress(bounds, rules)
    const holder = await findActiveUnits(db, { teamId, heldBy: unit.heldBy })
    if (holder.policy !== null && holder.revokedAt === null) {
      checkHolder(policySchema.parse(holder.policy).egress, rules)
    }
    if (isSame(rules, unit.egress)) return unit
    isNewScope = rules.siblings === 'stack' && !unit.stackIsScope
    if (isNewScope) await makeScope(db, stackId, { but: id })
    await setEgress(db, { id, rules })
    return unit
  })
  // A frozen machine is not to be thawed by an older record.
  app.activity.forgetFrozen([id])
  if (isNewScope) await applyAll(app, await othersOf(app, { teamId, stackId, id }))
  return before
}

async function othersOf(
  app: App,
  { teamId, stackId, id }: { teamId: string; stackId: string; id: string },
): Promise<string[]> {
  const units = await listUnitsOfStacks(app.db, { teamId, stackIds: [stackId], now: app.clock.now() })
  return units.map((unit) => unit.id).filter((each) => each !== id)
}

/** Says what would become of a connection. Nothing is asked of the network, and no name is resolved. */
export async function checkUnitEgress(
  app: App,
  caller: Caller,
  id: string,
  { host, port }: EgressCheck,
): Promise<EgressDecision> {
  const { egress, stackName } = await getRecord(app, caller, id)
  return internalDecision(egress, host, stackName) ?? decideEgress(egress, host, port)
}

/** Null for a host that is no unit's. */
function internalDecision(rules: EgressRules, host: string, stackName: string): EgressDecision | null {
  const name = host.toLowerCase().replace(/\.$/, '')
  if (!isUnitName(name)) return null
  const isOfStack = name.endsWith(`.${searchDomain(stackName)}`)
  const isAllowed = rules.siblings === 'team' || (rules.siblings === 'stack' && isOfStack)
  if (isAllowed) {
    const which = rules.siblings === 'team' ? 'every unit of its team' : 'the units of its stack'
    return { decision: 'allowed', rule: null, reason: `The unit may reach ${which}.` }
  }
  const which = rules.siblings === 'stack' ? 'only the units of its own stack' : 'no other unit'
  return {
    decision: 'refused',
    rule: null,
    reason: `The unit may reach ${which}: change "siblings" of its rules.`,
  }
}

function inForce(unit: UnitRecord): EgressInForce {
  const { egress, egressVersion: version, egressAppliedVersion, egressAppliedAt, createdAt } = unit
  const appliedAt = version === 0 ? createdAt : egressAppliedVersion === version ? egressAppliedAt : null
  return { ...egress, version, appliedAt: appliedAt?.toISOString() ?? null }
}

function isSettable({ state }: UnitRecord): boolean {
  return !isTransitional(state) && state !== 'error' && state !== 'destroyed'
}

function isSame(one: EgressRules, other: EgressRules): boolean {
  return JSON.stringify(partsOf(one)) === JSON.stringify(partsOf(other))
}

function partsOf({ mode, allow, deny = [], siblings }: EgressRules = openEgress): unknown {
  return [mode, allow, deny, siblings]
}
