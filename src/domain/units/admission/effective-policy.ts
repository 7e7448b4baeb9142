// What a credential may do now. Policies are checked twice: early, to fail fast, and again under the team lock, so
// changes made in between apply (spec 5.7, decisions/teams-and-policies.md).

import type { Kysely } from 'kysely'
import type { App } from '../../../app.ts'
import { teamSecretsOf } from '../../../contract/env.ts'
import { unauthorized, validation } from '../../../contract/errors.ts'
import { InvalidImageReference, parseImageReference } from '../../../contract/image-reference.ts'
import type { Database } from '../../../store/db.ts'
import { type ActiveUnits, findActiveUnits } from '../../../store/active-units.ts'
import { findAdmission, type Spending } from '../../../store/spending.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { readSpending } from '../../billing/afford.ts'
import { sizeNanoCentsPerHour } from '../../billing/prices.ts'
import { isLive } from '../../credentials/authenticate.ts'
import type { Caller } from '../../credentials/caller.ts'
import { completePolicy } from '../../credentials/complete-policy.ts'
import { type EffectivePolicy, checkUnit } from '../../policies/check.ts'
import { sizeDiskGb } from './disk-limits.ts'

export function effectivePolicyOf(
  app: App,
  { policy, plan }: Pick<Caller, 'policy' | 'plan'>,
  teamEgress: EffectivePolicy['teamEgress'] = null,
): EffectivePolicy {
  return { policy, plan, sleepMax: app.config.sleepMax, teamEgress }
}

/** Returns the caller's limits and how many units run for it now. Call it with the team locked. */
export async function readEffectivePolicy(
  app: App,
  db: Kysely<Database>,
  caller: Caller,
): Promise<{ bounds: EffectivePolicy; live: number }> {
  const { teamId, credentialId } = caller
  return effectiveNow(app, caller, await findActiveUnits(db, { teamId, heldBy: credentialId }))
}

/** The same with what else decides whether units may be made, in one query. */
export async function readAdmission(
  app: App,
  db: Kysely<Database>,
  caller: Caller,
): Promise<{ bounds: EffectivePolicy; live: number; spending: Spending; diskGb: number }> {
  const { teamId, credentialId } = caller
  const moment = { now: app.clock.now(), sizePrices: sizeNanoCentsPerHour }
  const { diskGb, ...spending } = await findAdmission(db, { teamId, credentialId, sizeDiskGb, ...moment })
  return { ...effectiveNow(app, caller, spending), spending, diskGb }
}

/** The same with what decides whether a unit may be started, in one query. */
export async function readStartAdmission(
  app: App,
  db: Kysely<Database>,
  caller: Caller,
): Promise<{ bounds: EffectivePolicy; live: number; spending: Spending }> {
  const spending = await readSpending(app, db, caller)
  return { ...effectiveNow(app, caller, spending), spending }
}

function effectiveNow(
  app: App,
  { kind, policy }: Caller,
  holding: ActiveUnits,
): { bounds: EffectivePolicy; live: number } {
  const { live, plan, revokedAt, teamEgress } = holding
  if (kind === 'session') return { bounds: effectivePolicyOf(app, { policy, plan }, teamEgress), live }
  if (holding.policy === null) throw unauthorized()
  const current = completePolicy(holding.policy)
  if (!isLive({ policy: current, revokedAt }, app.clock.now())) throw unauthorized()
  return { bounds: effectivePolicyOf(app, { policy: current, plan }, teamEgress), live }
}

/** Checks an existing unit, which another credential may have created. */
export function checkExisting(
  bounds: EffectivePolicy,
  unit: Pick<UnitRecord, 'size' | 'image' | 'sleep' | 'egress' | 'spec'>,
): void {
  const teamSecrets = teamSecretsOf(unit.spec.env)
  const nested = unit.spec.nested === true
  checkUnit(bounds, { ...unit, registry: registryOf(unit.image), teamSecrets, nested })
}

export function registryOf(image: string): string {
  try {
    return parseImageReference(image).registry
  } catch (error) {
    if (!(error instanceof InvalidImageReference)) throw error
    throw validation([{ path: 'spec.image', message: error.message }])
  }
}
