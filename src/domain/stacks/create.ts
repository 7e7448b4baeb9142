// Creates an empty stack; creates of units refer to it by name.

import type { App } from '../../app.ts'
import { conflict } from '../../contract/errors.ts'
import type { Stack, StackCreate } from '../../contract/stack.ts'
import { newId } from '../../lib/ids.ts'
import { findStackByName, insertStack } from '../../store/stacks.ts'
import type { Caller } from '../credentials/caller.ts'
import type { Once } from '../idempotency/once.ts'
import { inLiveTeamTransaction } from '../transactions/transactions.ts'
import { toStack } from './to-stack.ts'

export async function createStack(
  app: App,
  { teamId }: Caller,
  { name }: StackCreate,
  once: Once | null,
): Promise<Stack> {
  return await inLiveTeamTransaction(app, { teamId, once }, async (db) => {
    const other = await findStackByName(db, { teamId, name })
    if (other) {
      throw conflict(`The team already has a stack named "${name}"; use it or choose another name.`, {
        stackId: other.id,
      })
    }
    const made = {
      id: newId('stack'),
      teamId,
      name,
      createdAt: app.clock.now(),
      sleep: null,
      isUnnamed: false,
      madeBy: null,
    }
    await insertStack(db, made)
    const shown = toStack(app, { ...made, deletedAt: null }, [])
    await once?.keep(db, shown)
    return shown
  })
}
