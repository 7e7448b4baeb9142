// One stack of the caller's team, with its units.

import type { App } from '../../app.ts'
import { forbidden, notFound } from '../../contract/errors.ts'
import type { Stack } from '../../contract/stack.ts'
import { isId } from '../../lib/ids.ts'
import { findStack, findStackByName, stackExists, type StackRecord } from '../../store/stacks.ts'
import { listUnitsOfStacks } from '../../store/units.ts'
import type { Caller } from '../credentials/caller.ts'
import { showStack } from './show.ts'

/** `idOrName`: as in the filter of the units' list. */
export async function getStack(app: App, caller: Caller, idOrName: string): Promise<Stack> {
  const stack = await getLiveStack(app, caller, idOrName)
  const { id, teamId } = stack
  return showStack(
    app,
    stack,
    await listUnitsOfStacks(app.db, { teamId, stackIds: [id], now: app.clock.now() }),
  )
}

export async function getLiveStack(app: App, caller: Caller, idOrName: string): Promise<StackRecord> {
  const stack = await getStackRecord(app, caller, idOrName)
  if (stack.deletedAt !== null) throw notFound('stack', idOrName)
  return stack
}

/**
 * By its id also one that was deleted. Of another team 403, unknown 404, as with units; a row of another team is
 * never read.
 */
export async function getStackRecord(app: App, caller: Caller, idOrName: string): Promise<StackRecord> {
  const { teamId } = caller
  const stack = isId('stack', idOrName)
    ? await findStack(app.db, { teamId, id: idOrName })
    : await findStackByName(app.db, { teamId, name: idOrName })
  if (stack) return stack
  if (isId('stack', idOrName) && (await stackExists(app.db, idOrName))) {
    throw forbidden('This stack belongs to another team.')
  }
  throw notFound('stack', idOrName)
}
