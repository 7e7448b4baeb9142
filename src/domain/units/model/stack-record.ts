// Finds a stack of the caller's team.

import type { App } from '../../../app.ts'
import { forbidden, notFound } from '../../../contract/errors.ts'
import { isId } from '../../../lib/ids.ts'
import { findStack, findStackByName, stackExists, type StackRecord } from '../../../store/stacks.ts'
import type { Caller } from '../../credentials/caller.ts'

/**
 * By its id it also finds a deleted stack. A stack of another team gets 403, an unknown one 404, as with units; rows
 * of another team are never read.
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
