// Returns one stack of the caller's team, with its units.

import type { App } from '../../app.ts'
import { notFound } from '../../contract/errors.ts'
import type { Stack } from '../../contract/stack.ts'
import type { StackRecord } from '../../store/stacks.ts'
import { listUnitsOfStacks } from '../../store/units.ts'
import type { Caller } from '../credentials/caller.ts'
import { getStackRecord } from '../units/model/stack-record.ts'
import { toStack } from './to-stack.ts'

/**
 * `idOrName`: as in the filter of the list of units. By its id also a deleted stack, while a unit in `error` still
 * names it.
 */
export async function getStack(app: App, caller: Caller, idOrName: string): Promise<Stack> {
  const stack = await getStackRecord(app, caller, idOrName)
  const { id, teamId } = stack
  await app.activity.unwrittenWakes.untilWritten({ teamId })
  const units = await listUnitsOfStacks(app.db, { teamId, stackIds: [id], now: app.clock.now() })
  if (stack.deletedAt !== null && units.length === 0) throw notFound('stack', idOrName)
  return toStack(app, stack, units)
}

export async function getLiveStack(app: App, caller: Caller, idOrName: string): Promise<StackRecord> {
  const stack = await getStackRecord(app, caller, idOrName)
  if (stack.deletedAt !== null) throw notFound('stack', idOrName)
  return stack
}
