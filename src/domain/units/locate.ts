// Which unit or stack a caller means by a name, for callers that know no ids: an agent has what it was told in words.

import type { App } from '../../app.ts'
import { AppError, notFound, validation } from '../../contract/errors.ts'
import { isId } from '../../lib/ids.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { findUnitsByName } from '../../store/named-units.ts'
import { listUnitsOfTeam } from '../../store/units.ts'
import type { Caller } from '../credentials/caller.ts'
import { getRecord } from './get.ts'

/** So many names are told to a caller who missed. */
const NAMES = 10

/**
 * A unit of the caller's team by its id, its name, or `stack/name`. Of several by one name that were made and undone, the
 * newest. Throws `not_found` with the names there are, and `validation` for a name in two stacks, with both spelled out.
 */
export async function locateUnit(app: App, caller: Caller, called: string): Promise<UnitRecord> {
  if (isId('unit', called)) return await getRecord(app, caller, called)
  const { teamId } = caller
  const [stack, name] = called.includes('/') ? called.split('/', 2) : [null, called]
  const found = await findUnitsByName(app.db, {
    teamId,
    name: name ?? '',
    stack: stack ?? null,
    now: app.clock.now(),
  })
  const live = found.filter(({ state }) => state !== 'error' && state !== 'destroying')
  const [first, second] = live.length > 0 ? live : found.slice(0, 1)
  if (!first) throw await unknown(app, caller, called)
  if (second) {
    const spelled = live.map((unit) => `"${unit.stackName}/${unit.name}"`).join(' or ')
    throw validation([{ path: 'unit', message: `the name is in two stacks: say ${spelled}` }])
  }
  return first
}

async function unknown(app: App, { teamId }: Caller, called: string): Promise<Error> {
  const { message, code, status } = notFound('unit', called)
  const others = await listUnitsOfTeam(app.db, {
    teamId,
    stackId: null,
    destroyedToo: false,
    before: null,
    limit: NAMES,
    now: app.clock.now(),
  })
  const names = others.map((unit) => `${unit.stackName}/${unit.name}`).join(', ')
  const hint = names === '' ? 'The team has no units.' : `The newest units here: ${names}.`
  return new AppError(code, status, `${message} ${hint}`)
}
