// On whose account a unit runs. A credential takes one more on in one transaction with the team locked, so
// that at no instant more run for it than its policy allows; from there on the unit counts against it.

import type { App } from '../../app.ts'
import { nextState } from '../../contract/states.ts'
import { policySchema } from '../../contract/policy.ts'
import { isId } from '../../lib/ids.ts'
import { findPolicy } from '../../store/credentials.ts'
import { lockTeam } from '../../store/stacks.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { countLiveUnits } from '../../store/units.ts'
import type { Caller } from '../credentials/caller.ts'
import { widePolicy } from '../credentials/wide-policy.ts'
import { checkConcurrency } from '../policies/check.ts'
import { refuseCrowd } from './admission.ts'
import { transition } from './transition.ts'

export type Holder = Pick<Caller, 'credentialId' | 'policy'>

/**
 * The `starting` unit, or null: it is not where the trigger can take it from. Throws `quota_exceeded`. `onTaken`: the
 * unit is, as soon as the transaction is committed, which nothing but an outage is in the way of.
 */
export async function takeOn(
  app: App,
  holder: Holder,
  unit: UnitRecord,
  trigger: 'start' | 'wake' | 'thaw',
  onTaken: (starting: UnitRecord) => void = () => {},
): Promise<UnitRecord | null> {
  if (nextState(unit, trigger) === null) return null
  if (trigger !== 'thaw') refuseCrowd(app, unit)
  const take = () =>
    app.db.transaction().execute(async (db) => {
      await lockTeam(db, unit.teamId)
      checkConcurrency(holder.policy, await countLiveUnits(db, holder.credentialId))
      const starting = await transition(app, unit, trigger, { db, set: { heldBy: holder.credentialId } })
      if (starting) onTaken(starting)
      return starting
    })
  // Of one team one at a time: its units could else hold every connection to wait for its lock.
  return await app.teamTurns(unit.teamId, take)
}

/**
 * Whoever set the unit running last: it goes on on that account when nobody calls it. A credential that has
 * expired or was revoked can call nothing any more, but its units live on (design 4).
 */
export async function lastHolder(app: App, { heldBy }: UnitRecord): Promise<Holder> {
  if (isId('session', heldBy)) return { credentialId: heldBy, policy: widePolicy }
  const policy = await findPolicy(app.db, heldBy)
  if (policy === null) throw new Error('the credential that last held a unit is gone')
  return { credentialId: heldBy, policy: policySchema.parse(policy) }
}
