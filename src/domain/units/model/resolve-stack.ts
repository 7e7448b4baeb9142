// Finds or creates the stack of a new unit.

import type { Kysely } from 'kysely'
import type { App } from '../../../app.ts'
import { newId } from '../../../lib/ids.ts'
import type { Database } from '../../../store/db.ts'
import {
  findStackByName,
  insertStack,
  insertStackUnlessTaken,
  nameStack,
  type StackRecord,
} from '../../../store/stacks.ts'
import { firstFreeName } from './names.ts'

/**
 * Returns the stack of that name, created if absent. Without a name it creates one named after the unit (design 5),
 * which is deleted with its last unit unless a call has named it before. A stack created here is removed if the
 * create fails. Call it with the team locked.
 */
export async function resolveStack(
  app: App,
  db: Kysely<Database>,
  teamId: string,
  { stack, unitName, madeBy }: { stack: string | undefined; unitName: string; madeBy: string | null },
): Promise<StackRecord> {
  if (stack === undefined) {
    // Tried rather than looked up first: it nearly always succeeds, and a caller waits.
    let made = newStack(app, { teamId, name: unitName, sleep: null, isUnnamed: true, madeBy })
    await firstFreeName(unitName, async (name) => {
      made = { ...made, name }
      return !(await insertStackUnlessTaken(db, made))
    })
    return made
  }
  const existing = await findStackByName(db, { teamId, name: stack })
  const isMadeForOthers = existing !== null && (existing.isUnnamed || existing.madeBy !== null)
  if (existing && (!isMadeForOthers || (await nameStack(db, existing)))) return existing
  return await makeStack(app, db, { teamId, name: stack, sleep: null, isUnnamed: false, madeBy })
}

export async function firstFreeStackName(
  db: Kysely<Database>,
  { teamId, wanted }: { teamId: string; wanted: string },
): Promise<string> {
  return await firstFreeName(wanted, async (name) => (await findStackByName(db, { teamId, name })) !== null)
}

export async function makeStack(app: App, db: Kysely<Database>, stack: NewStack): Promise<StackRecord> {
  const made = newStack(app, stack)
  await insertStack(db, made)
  return made
}

type NewStack = Pick<StackRecord, 'teamId' | 'name' | 'sleep' | 'isUnnamed' | 'madeBy'>

function newStack(app: App, stack: NewStack): StackRecord {
  return { ...stack, id: newId('stack'), createdAt: app.clock.now(), deletedAt: null }
}
