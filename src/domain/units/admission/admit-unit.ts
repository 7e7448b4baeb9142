// Decides whether a unit may start, wake or thaw, and counts it against the credential that it runs for: capacity of the
// host, policy, number of units, money. That is one transaction with the team locked, so at no instant do more units
// run for a credential than its policy allows. A caller cannot wake a unit that it could not create
// (decisions/teams-and-policies.md).

import type { Kysely } from 'kysely'
import type { App } from '../../../app.ts'
import { nextState } from '../../../contract/states.ts'
import type { Policy } from '../../../contract/policy.ts'
import { isId } from '../../../lib/ids.ts'
import type { Database } from '../../../store/db.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { checkAfforded, readSpending } from '../../billing/afford.ts'
import type { Caller } from '../../credentials/caller.ts'
import { completePolicy } from '../../credentials/complete-policy.ts'
import { unrestrictedPolicy } from '../../credentials/unrestricted-policy.ts'
import { checkConcurrency } from '../../policies/check.ts'
import { inTransactionOfLockedTeam } from '../../transactions/transactions.ts'
import { shedLoad } from '../lifecycle/cold-starts.ts'
import { checkExisting, readStartAdmission } from './effective-policy.ts'
import { transition } from '../lifecycle/transition.ts'

/**
 * Returns the `starting` unit, or null if the trigger is not allowed in its state. Throws the refusal of the policy,
 * or `payment_required`. Without a caller the unit runs for the credential it last ran for, of which only the number
 * of units and the money are checked: an expired or revoked credential cannot call anything, but its units keep
 * running (design 4), even those it could not create any more. Calls `onTaken` as soon as the transaction can only
 * fail because of an outage.
 */
export async function admitUnit(
  app: App,
  caller: Caller | null,
  unit: UnitRecord,
  trigger: 'start' | 'wake' | 'thaw',
  onTaken: (starting: UnitRecord) => void = () => {},
): Promise<UnitRecord | null> {
  if (nextState(unit, trigger) === null) return null
  if (trigger !== 'thaw') shedLoad(app, unit)
  // One at a time per team: otherwise its units could hold every connection, each waiting for the team's lock.
  return await app.teamLocks(unit.teamId, () => admitUnitInTeamLock(app, caller, unit, trigger, onTaken))
}

/** The same for a caller that already holds the team's lock in this process. */
export async function admitUnitInTeamLock(
  app: App,
  caller: Caller | null,
  unit: UnitRecord,
  trigger: 'start' | 'wake' | 'thaw',
  onTaken: (starting: UnitRecord) => void = () => {},
): Promise<UnitRecord | null> {
  return await inTransactionOfLockedTeam(app, unit.teamId, async (db) => {
    if (caller) await checkCaller(app, db, caller, unit)
    else await checkLastCredential(app, db, unit)
    const heldBy = caller?.credentialId ?? unit.heldBy
    const starting = await transition(app, unit, trigger, { db, set: { heldBy } })
    if (starting) onTaken(starting)
    return starting
  })
}

async function checkCaller(app: App, db: Kysely<Database>, caller: Caller, unit: UnitRecord): Promise<void> {
  const { bounds, live, spending } = await readStartAdmission(app, db, caller)
  checkExisting(bounds, unit)
  checkConcurrency(bounds.policy, live)
  checkAfforded(app, spending, [unit.size])
}

/**
 * Checks the credential that the unit last ran for. With the team locked this decides; without the lock it predicts.
 * It is one query, because a visitor waits for it.
 */
export async function checkLastCredential(
  app: App,
  db: Kysely<Database>,
  { teamId, heldBy, size }: UnitRecord,
): Promise<void> {
  const spending = await readSpending(app, db, { teamId, credentialId: heldBy })
  checkConcurrency(policyOf(heldBy, spending.policy), spending.live)
  checkAfforded(app, spending, [size])
}

function policyOf(heldBy: string, stored: unknown): Policy {
  if (isId('session', heldBy)) return unrestrictedPolicy
  if (stored === null) throw new Error('the credential that last held a unit is gone')
  return completePolicy(stored)
}
