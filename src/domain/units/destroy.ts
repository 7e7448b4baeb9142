// Destroying a unit: allowed in every state, and permanent. Everything of it is removed except its row, which stays
// readable by id.

import type { App } from '../../app.ts'
import type { Unit } from '../../contract/unit.ts'
import { isEngineError } from '../../engine/errors.ts'
import { SECOND } from '../../lib/clock.ts'
import { completesWithin } from '../../lib/concurrency/completes-within.ts'
import type { Step } from '../../lib/saga.ts'
import { deleteStackOfLastUnit, lockStack } from '../../store/stacks.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { deleteKept, findUnitOfAnyTeam } from '../../store/units.ts'
import { listUnitsDueToBeDestroyed } from '../../store/units-of-jobs.ts'
import type { Caller } from '../credentials/caller.ts'
import { inTransaction } from '../transactions/transactions.ts'
import { engineFailure } from './lifecycle/failures.ts'
import { getRecord } from './get.ts'
import { toUnit } from './model/to-unit.ts'
import { transition } from './lifecycle/transition.ts'
import { runOperation, type OperationContext, type UnitOperation } from './lifecycle/operation.ts'

const LONGEST_END_MS = 90 * SECOND
const END_PAUSE_MS = SECOND / 4

const machineStep: Step<OperationContext> = {
  name: 'machine',
  run: async ({ app, unit }) => {
    // A process that writes a lot ends only after its writes: that is slow, but not an error.
    const deadlineMs = app.clock.monotonicMs() + LONGEST_END_MS
    for (;;) {
      try {
        return await app.fleet.engineOf(unit).destroy(unit.id)
      } catch (error) {
        if (!isEngineError(error, 'timeout') || app.clock.monotonicMs() >= deadlineMs) throw error
      }
      await app.clock.sleep(END_PAUSE_MS)
    }
  },
}

/** Takes a `destroying` unit to `destroyed`. A destroy that fails is resumed by the reconciler. */
export const destroyOperation: UnitOperation = {
  saga: { name: 'destroy', steps: [machineStep] },
  onSuccess: async ({ app, unit }) => {
    await inTransaction(app, async (db) => {
      // If the last two units of a stack are destroyed together, one of them must see that the other is gone.
      await lockStack(db, unit.stackId)
      await deleteKept(db, unit.id)
      if (!(await transition(app, unit, 'destroyed', { db }))) return
      await deleteStackOfLastUnit(db, { id: unit.stackId, at: app.clock.now() })
    })
  },
  onFailure: async ({ unit }, { cause }) => {
    throw engineFailure(cause, unit)
  },
}

/** Destroying a destroyed unit succeeds, so that the call can be repeated. Nothing changes before `written` resolves. */
export async function destroyUnit(
  app: App,
  caller: Caller,
  id: string,
  written?: Promise<void>,
): Promise<Unit> {
  const unit = await getRecord(app, caller, id)
  await written
  await destroy(app, unit)
  return toUnit(app, await getRecord(app, caller, id))
}

/** One run of the background job: destroys units in `error` after their hour (spec 3). */
export async function destroyErroredUnits(app: App): Promise<void> {
  const due = await listUnitsDueToBeDestroyed(app.db, { now: app.clock.now(), limit: 100 })
  await Promise.all(due.map((unit) => destroyQuietly(app, unit)))
}

/**
 * For a unit that no caller waits for: a failure is retried in a later run, and a slow one delays nothing. A unit that has come
 * to `error` since it was read is kept, so that its owner can read why.
 */
export async function destroyQuietly(app: App, unit: UnitRecord): Promise<void> {
  const destroyed = destroy(app, unit, { unlessFailed: unit.state !== 'error' }).catch((error: unknown) => {
    app.log.warn({ err: error, unitId: unit.id }, 'unit was not destroyed; will be retried')
  })
  await completesWithin(app.clock, LONGEST_WAIT_MS, destroyed)
}

const LONGEST_WAIT_MS = 5 * SECOND

async function destroy(app: App, unit: UnitRecord, { unlessFailed = false } = {}): Promise<void> {
  let current: UnitRecord | null = unit
  while (current && current.state !== 'destroyed') {
    if (unlessFailed && current.state === 'error') return
    const destroying: UnitRecord | null =
      current.state === 'destroying' ? current : await transition(app, current, 'destroy')
    if (destroying) return await runOperation(app, destroying, destroyOperation)
    // Another process changed it between reading and writing.
    current = await findUnitOfAnyTeam(app.db, { id: unit.id, now: app.clock.now() })
  }
}
