// On whose account a unit runs. A credential takes one more on in one transaction with the team locked, so
// that at no instant more run for it than its policy allows; from there on the unit counts against it.

import type { App } from '../../app.ts'
import { nextState } from '../../contract/states.ts'
import { type Policy, policySchema } from '../../contract/policy.ts'
import { isId } from '../../lib/ids.ts'
import { lockTeam } from '../../store/stacks.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { findHolding } from '../../store/units.ts'
import { checkAffordable } from '../billing/afford.ts'
import type { Caller } from '../credentials/caller.ts'
import { widePolicy } from '../credentials/wide-policy.ts'
import { checkConcurrency } from '../policies/check.ts'
import { refuseCrowd } from './admission.ts'
import { transition } from './transition.ts'

export type Holder = Pick<Caller, 'credentialId' | 'policy'>

/**
 * The `starting` unit, or null: it is not where the trigger can take it from. Throws `quota_exceeded` or `payment_required`. Without a holder,
 * because nobody called, on whose account it ran last: a credential that has expired or was revoked can call nothing
 * any more, but its units live on (design 4). `onTaken`: the unit is, as soon as the transaction is committed, which
 * nothing but an outage is in the way of.
 */
export async function takeOn(
  app: App,
  holder: Holder | null,
  unit: UnitRecord,
  trigger: 'start' | 'wake' | 'thaw',
  onTaken: (starting: UnitRecord) => void = () => {},
): Promise<UnitRecord | null> {
  if (nextState(unit, trigger) === null) return null
  if (trigger !== 'thaw') refuseCrowd(app, unit)
  const heldBy = holder?.credentialId ?? unit.heldBy
  const take = () =>
    app.db.transaction().execute(async (db) => {
      await lockTeam(db, unit.teamId)
      const { live, policy } = await findHolding(db, heldBy)
      checkConcurrency(holder?.policy ?? policyOf(heldBy, policy), live)
      await checkAffordable(app, db, { teamId: unit.teamId, credentialId: heldBy }, [unit.size])
      const starting = await transition(app, unit, trigger, { db, set: { heldBy } })
      if (starting) onTaken(starting)
      return starting
    })
  // Of one team one at a time: its units could else hold every connection to wait for its lock.
  return await app.teamTurns(unit.teamId, take)
}

function policyOf(heldBy: string, stored: unknown): Policy {
  if (isId('session', heldBy)) return widePolicy
  if (stored === null) throw new Error('the credential that last held a unit is gone')
  return policySchema.parse(stored)
}
