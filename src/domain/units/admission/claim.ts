// Counts a unit against the credential that it runs for. A claim is one transaction with the team locked, so at no
// instant do more units run for a credential than its policy allows. A caller cannot claim a unit that it could not
// create (decision 0047).

import type { Kysely } from 'kysely'
import type { App } from '../../../app.ts'
import { nextState } from '../../../contract/states.ts'
import { type Policy, policySchema } from '../../../contract/policy.ts'
import { isId } from '../../../lib/ids.ts'
import type { Database } from '../../../store/db.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { checkAffordable, checkAfforded, readSpending } from '../../billing/afford.ts'
import type { Caller } from '../../credentials/caller.ts'
import { unrestrictedPolicy } from '../../credentials/unrestricted-policy.ts'
import { checkConcurrency } from '../../policies/check.ts'
import { inTransactionOfLockedTeam } from '../../transactions/transactions.ts'
import { shedLoad } from './cold-starts.ts'
import { checkExisting, readEffectivePolicy } from './effective-policy.ts'
import { transition } from '../lifecycle/transition.ts'

/**
 * The `starting` unit, or null: it is not where the trigger can take it from. Throws what the policy says, and
 * `payment_required`. Without a caller the unit goes by the account it ran on last, of which its number and money alone
 * are looked at: a credential that has expired or was revoked can call nothing any more, but its units live on (design
 * 4), as do those it may not make any more. `onTaken`: the unit is, as soon as the transaction is committed, which
 * nothing but an outage is in the way of.
 */
export async function claimUnit(
  app: App,
  caller: Caller | null,
  unit: UnitRecord,
  trigger: 'start' | 'wake' | 'thaw',
  onTaken: (starting: UnitRecord) => void = () => {},
): Promise<UnitRecord | null> {
  if (nextState(unit, trigger) === null) return null
  if (trigger !== 'thaw') shedLoad(app, unit)
  // Of one team one at a time: its units could else hold every connection to wait for its lock.
  return await app.teamLocks(unit.teamId, () => claimUnitInTeamLock(app, caller, unit, trigger, onTaken))
}

/** The same for a caller who holds the team's lock in this process already. */
export async function claimUnitInTeamLock(
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
  const { bounds, live } = await readEffectivePolicy(app, db, caller)
  checkExisting(bounds, unit)
  checkConcurrency(bounds.policy, live)
  await checkAffordable(app, db, caller, [unit.size])
}

/**
 * Of the account that the unit last ran on. With the team locked it decides; without, it foresees that. One question,
 * since a visitor waits for it.
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
  return policySchema.parse(stored)
}
