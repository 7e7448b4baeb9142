// Finds the unit or stack that a name refers to, for agents, which often know only names.

import type { App } from '../../app.ts'
import { AppError, notFound, validation } from '../../contract/errors.ts'
import { isId } from '../../lib/ids.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { findUnitsByName } from '../../store/named-units.ts'
import { listNewestUnits } from '../../store/unit-lists.ts'
import type { Caller } from '../credentials/caller.ts'
import { getRecord } from './get.ts'

/** How many names the error lists. */
const NAMES = 10

/**
 * Finds a unit of the caller's team by its id, its name, or `stack/name`. Of several with one name of which only one
 * exists, that one; else the newest. Throws `not_found` with the existing names, and `validation` for a name in two
 * stacks, with both written out.
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
    throw validation([{ path: 'unit', message: `two stacks have a unit with this name: send ${spelled}` }])
  }
  return first
}

async function unknown(app: App, { teamId }: Caller, called: string): Promise<Error> {
  const { message, code, status } = notFound('unit', called)
  const others = await listNewestUnits(app.db, {
    teamId,
    destroyedToo: false,
    limit: NAMES,
    now: app.clock.now(),
  })
  const names = others.map((unit) => `${unit.stackName}/${unit.name}`).join(', ')
  const hint = names === '' ? 'The team has no units.' : `The newest units here: ${names}.`
  return new AppError(code, status, `${message} ${hint}`, { noun: 'unit' })
}
