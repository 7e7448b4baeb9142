// Deletes a stack and destroys its units. One transaction frees its name and begins the destruction of all units, so
// that none is left and none is added; an interrupted destruction is resumed as for any unit.

import type { App } from '../../app.ts'
import type { Stack } from '../../contract/stack.ts'
import { deleteSecrets } from '../../store/secrets.ts'
import { deleteStack, type StackRecord } from '../../store/stacks.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { listUnitsByIds, listUnitsOfStacks, lockUnitsOfStack } from '../../store/units.ts'
import type { Caller } from '../credentials/caller.ts'
import { inTeamTransaction } from '../transactions/transactions.ts'
import { destroyOperation } from '../units/destroy.ts'
import { getStackRecord } from '../units/model/stack-record.ts'
import { transition } from '../units/lifecycle/transition.ts'
import { runOperation } from '../units/lifecycle/operation.ts'
import { toStack } from './to-stack.ts'

/**
 * Returns the stack with the destroyed units. Deleting a deleted stack by its id succeeds, so the call can be
 * repeated.
 */
export async function destroyStack(app: App, caller: Caller, idOrName: string): Promise<Stack> {
  const stack = await getStackRecord(app, caller, idOrName)
  const destroying = await sendOff(app, stack)
  await Promise.all(destroying.map((unit) => runOperation(app, unit, destroyOperation)))
  const ids = destroying.map(({ id }) => id)
  return toStack(
    app,
    stack,
    await listUnitsByIds(app.db, { teamId: stack.teamId, ids, now: app.clock.now() }),
  )
}

async function sendOff(app: App, { id, teamId }: StackRecord): Promise<UnitRecord[]> {
  return await inTeamTransaction(app, teamId, async (db) => {
    await deleteStack(db, { teamId, id, at: app.clock.now() })
    await deleteSecrets(db, id)
    await lockUnitsOfStack(db, id)
    const units = await listUnitsOfStacks(db, { teamId, stackIds: [id], now: app.clock.now() })
    const destroying: UnitRecord[] = []
    for (const unit of units) {
      const sent = unit.state === 'destroying' ? unit : await transition(app, unit, 'destroy', { db })
      if (!sent) throw new Error('a unit changed while it was locked')
      destroying.push(sent)
    }
    return destroying
  })
}
