// Whether one more unit may run for a credential: counted and taken in one transaction, with the team locked,
// so that at no instant more run than its policy allows. From here on the unit counts against it.

import type { App } from '../../app.ts'
import { nextState } from '../../contract/states.ts'
import { lockTeam } from '../../store/stacks.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { countLiveUnits } from '../../store/units.ts'
import type { Caller } from '../credentials/caller.ts'
import { checkConcurrency } from '../policies/check.ts'
import { transition } from './transition.ts'

/** On whose account a unit runs. */
export type Holder = Pick<Caller, 'credentialId' | 'policy'>

/** The `starting` unit, or null: it is not where the trigger can take it from. Throws `quota_exceeded`. */
export async function admit(
  app: App,
  holder: Holder,
  unit: UnitRecord,
  trigger: 'start' | 'wake' | 'thaw',
): Promise<UnitRecord | null> {
  if (nextState(unit, trigger) === null) return null
  return await app.db.transaction().execute(async (db) => {
    await lockTeam(db, unit.teamId)
    checkConcurrency(holder.policy, await countLiveUnits(db, holder.credentialId))
    return await transition(app, unit, trigger, { db, set: { heldBy: holder.credentialId } })
  })
}
