// The stacks of the caller's team, newest first.

import type { App } from '../../app.ts'
import { parseCursor } from '../../contract/cursor.ts'
import type { StackList, StackListQuery } from '../../contract/stack.ts'
import { encodeCursor } from '../../lib/cursor.ts'
import { listStacksOfTeam } from '../../store/stacks.ts'
import { listUnitsOfStacks } from '../../store/units.ts'
import type { Caller } from '../credentials/caller.ts'
import { toStack } from './to-stack.ts'

/** A page ends early if its stacks have more units than this. */
const MAX_UNITS = 500

export async function listStacks(app: App, { teamId }: Caller, query: StackListQuery): Promise<StackList> {
  const found = await listStacksOfTeam(app.db, {
    teamId,
    before: parseCursor(query.cursor, 'stack'),
    // One more row than asked for, to know whether there is a next page.
    limit: query.limit + 1,
  })
  const page = found.slice(0, Math.min(query.limit, howManyFit(found)))
  const last = page.at(-1)
  const stackIds = page.map(({ id }) => id)
  await app.activity.unwrittenWakes.untilWritten({ teamId })
  const units = await listUnitsOfStacks(app.db, { teamId, stackIds, now: app.clock.now() })
  return {
    stacks: page.map((stack) => toStack(app, stack, units)),
    next: found.length > page.length && last ? encodeCursor(last.id) : null,
  }
}

/** Returns at least 1. */
function howManyFit(stacks: { unitCount: number }[]): number {
  let units = 0
  const beyond = stacks.findIndex(({ unitCount }) => (units += unitCount) > MAX_UNITS)
  return beyond === -1 ? stacks.length : Math.max(1, beyond)
}
