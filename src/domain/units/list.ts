// The units of the caller's team, newest first.

import type { App } from '../../app.ts'
import { parseCursor } from '../../contract/cursor.ts'
import type { UnitList, UnitListQuery } from '../../contract/unit.ts'
import { encodeCursor } from '../../lib/cursor.ts'
import { listUnitsOfTeam } from '../../store/units.ts'
import type { Caller } from '../credentials/caller.ts'
import { toUnit } from './model/to-unit.ts'
import { getStackRecord } from './model/stack-record.ts'

export async function listUnits(app: App, caller: Caller, query: UnitListQuery): Promise<UnitList> {
  const stackId = query.stack === undefined ? null : (await getStackRecord(app, caller, query.stack)).id
  await app.activity.unwrittenWakes.untilWritten({ teamId: caller.teamId })
  const found = await listUnitsOfTeam(app.db, {
    teamId: caller.teamId,
    stackId,
    destroyedToo: query.all,
    before: parseCursor(query.cursor, 'unit'),
    // One more row than asked for, to know whether there is a next page.
    limit: query.limit + 1,
    now: app.clock.now(),
  })
  const page = found.slice(0, query.limit)
  const last = page.at(-1)
  return {
    units: page.map((unit) => toUnit(app, unit)),
    next: found.length > page.length && last ? encodeCursor(last.id) : null,
  }
}
